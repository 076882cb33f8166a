// Reads a study from the database, also while another process controls it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::tune {

/// The study with all its trials and reports. Throws not_found.
Analysis read_study(store::StudyStore& store, const std::string& name);

/// Trials, and the rows of the database that they were made of.
struct TrialsRead {
  std::vector<TrialResult> trials{};
  std::vector<store::TrialRecord> records{};
};
/// All of a study, with reports and checkpoints.
TrialsRead read_trials(store::StudyStore& store, const store::StudyRecord& study);
/// Some of them with their reports, in the order of `numbers`; checkpoints are left out. Trials
/// that are not there are passed over.
TrialsRead read_trials(store::StudyStore& store, const store::StudyRecord& study,
                       std::span<const std::int64_t> numbers);

/// The objectives in the spec of a study.
std::vector<Objective> objectives_of_spec(const std::string& spec);

}  // namespace kolo::tune

// Reads a study from the database, also while another process controls it.
#pragma once

#include <string>

#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::tune {

/// The study with all its trials and reports. Throws not_found.
Analysis read_study(store::StudyStore& store, const std::string& name);

/// The objectives in the spec of a study.
std::vector<Objective> objectives_of_spec(const std::string& spec);

}  // namespace kolo::tune

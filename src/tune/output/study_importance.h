// How important the parameters of a study are, read from its database.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kolo/search/analysis.h"
#include "kolo/tune/analysis.h"
#include "store/study_store.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

/// The parameters of a study in the order of its points. `space` may call them otherwise.
struct StudyParameters {
  std::shared_ptr<const search::Space> space;
  std::vector<std::string> paths;
};

/// From the space of the study if that was a document, else from its outline, which has no
/// conditions. None in studies of versions that kept neither.
[[nodiscard]] StudyParameters parameters_of(const StudySpec& spec);

/// From trials and their records, in the same order. Empty when there are too few results to say
/// anything.
[[nodiscard]] std::vector<search::Importance> importance_of(
    const StudySpec& spec, const StudyParameters& parameters,
    std::span<const store::TrialRecord> records, std::span<const TrialResult> trials);

}  // namespace kolo::tune

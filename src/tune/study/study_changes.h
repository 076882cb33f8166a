// What has changed between a study and the session that resumes it.
//
// A study keeps its space and its objectives, because its results mean nothing without them. A
// change under which all earlier trials stay valid is applied. Any other is refused before anything
// is stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/space/space_outline.h"
#include "store/study_store.h"
#include "tune/study/steering.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

struct StudyChanges {
  std::vector<std::string> said;  ///< in words, for the user
  /// Set when points of earlier trials have to be carried over.
  std::optional<search::SpaceChange> space;
};

/// Throws failed_precondition naming everything that the study cannot bear. `now` is what the study
/// is to go on with, as `steering` was made from it.
StudyChanges changes_of(store::StudyStore& store, const store::StudyRecord& study,
                        const StudySpec& now, const Steering& steering);

}  // namespace kolo::tune

// What is other in a study that is resumed than in the session before.
//
// Space and objectives belong to a study, because its results mean nothing without them. A change
// that every trial so far can bear is applied; any other one is refused before anything is stored.
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

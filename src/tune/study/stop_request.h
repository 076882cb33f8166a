// Asks whoever controls a study to stop it: `kolo stop`, and the button of the dashboard.
#pragma once

#include <cstdint>
#include <optional>

#include "store/study_store.h"

namespace kolo::tune {

/// Stops the study, or this trial of it alone. Throws failed_precondition when nobody controls it,
/// not_found when it has no such trial.
void request_stop(store::StudyStore& store, const store::StudyRecord& study,
                  std::optional<std::int64_t> trial);

}  // namespace kolo::tune

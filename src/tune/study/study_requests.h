// What people ask of whoever controls a study: `kolo stop`, and the buttons of the dashboard.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "store/study_store.h"

namespace kolo::tune {

/// Stops the study, or this trial of it alone. Throws failed_precondition when nobody controls it,
/// not_found when it has no such trial.
void request_stop(store::StudyStore& store, const store::StudyRecord& study,
                  std::optional<std::int64_t> trial);

inline constexpr std::int64_t kMostAdded = 1'000'000;

/// So many more trials than planned. Throws failed_precondition when nobody controls the study, or
/// when the number of its trials follows from something else; invalid_argument for a count that is
/// not within 1 … kMostAdded.
void request_trials(store::StudyStore& store, const store::StudyRecord& study, std::int64_t count);

/// How many a request of this kind adds; nothing if it is of another kind.
std::optional<std::int64_t> added_by_request(std::string_view kind);

}  // namespace kolo::tune

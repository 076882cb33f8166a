// The state of a study as observers draw it.
#pragma once

#include "tune/output/observer.h"
#include "tune/study/study_state.h"

namespace kolo::tune {

/// With at most `rows` trials: those that run first, then those that wait, then the newest that
/// have ended.
[[nodiscard]] StudyView view_of(const StudyState& state, std::int64_t reports, std::size_t rows);

}  // namespace kolo::tune

// A study as text, for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tune/output/observer.h"

namespace kolo::tune {

/// The state of the study in one line.
std::string draw_line(const StudyView& view);

/// A table in at most `height` lines of at most `width` letters, without line ends. What does not
/// fit is left out: first trials, then lines of the scheduler.
std::vector<std::string> draw_table(const StudyView& view, std::size_t width, std::size_t height);

/// Trials that have ended, well or not.
std::int64_t done_of(const StudyView& view);

}  // namespace kolo::tune

// Observers that show a study while it runs.
#pragma once

#include <cstdio>
#include <memory>

#include "tune/output/observer.h"

namespace kolo::tune {

/// A table that is redrawn in place, for terminals.
std::shared_ptr<Observer> make_live_table(std::FILE* stream);
/// One line per period, for pipes and files.
std::shared_ptr<Observer> make_plain_lines(std::FILE* stream, std::chrono::milliseconds period);
/// A JSON object per event: trial_start, trial_result, trial_complete, trial_error, study, message.
std::shared_ptr<Observer> make_json_events(std::FILE* stream);

/// What Options::verbose asks for: a live table on a terminal, lines elsewhere, or nothing.
std::vector<std::shared_ptr<Observer>> default_observers(const Options& options);

}  // namespace kolo::tune

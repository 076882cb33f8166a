// What launchers leave in the folder log/ of their database, for those who were not there.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/log_file.h"

namespace kolo::app {

/// The logs of launchers, and the output of those that a batch system started; oldest first.
std::vector<std::filesystem::path> launcher_logs(const std::filesystem::path& folder);

/// A launcher in a batch job has no terminal: what it does is in a file of its own. Removes logs
/// that are too old. Null after a warning: a log that cannot be written keeps nobody from working.
std::unique_ptr<log::File> begin_launcher_log(const std::filesystem::path& folder);

}  // namespace kolo::app

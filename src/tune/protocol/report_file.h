// The file through which a trial reports that has no connection to its study: a line of the trial
// protocol (docs/trial-protocol.md) each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {

class ReportFile {
 public:
  explicit ReportFile(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Calls `take` with each line that is new since the last call; when the trial has ended, also
  /// with a last one that lacks its newline. Throws invalid_argument for a line that is none of the
  /// protocol, after those before it.
  void read(bool trial_has_ended, const std::function<void(TrialLine)>& take);

 private:
  std::filesystem::path path_;
  std::uintmax_t offset_ = 0;
};

}  // namespace kolo::tune

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
  using Take = std::function<void(TrialLine)>;
  /// Calls `take` with each line that is new since the last call; when the trial has ended, also
  /// with a last one that lacks its newline. Throws invalid_argument for a line that is none of the
  /// protocol, after those before it, and failed_precondition for what is no file.
  void read(bool trial_has_ended, const Take& take);

 private:
  void take_lines(const Take& take);
  /// Up to that place in what was read.
  void take_line(const Take& take, std::size_t end);

  std::filesystem::path path_;
  std::uintmax_t offset_ = 0;  // up to which the file is read
  std::string partial_;        // what was read and not taken, from taken_ on
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;  // there is no whole line before
};

}  // namespace kolo::tune

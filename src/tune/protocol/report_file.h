// The file through which a trial reports that has no connection to its study: a line of the trial
// protocol (docs/trial-protocol.md) each.
//
// Nothing slows the trial down, so it is given up when it writes far more than the study can take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {

class ReportFile {
 public:
  /// What is not read of it may take so many bytes.
  static constexpr std::uintmax_t kMostUnread = std::uintmax_t{256} << 20;
  /// Whether the file may hold what its trial has reported while no study was there.
  enum class Past : bool { none, any };

  explicit ReportFile(std::filesystem::path path, Past past = Past::none)
      : path_(std::move(path)), past_(past) {}

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  using Take = std::function<void(TrialLine)>;
  /// What is left behind a call of read().
  enum class Rest {
    none,
    more,      ///< lines that wait for let_go_on()
    too_much,  ///< more than kMostUnread; the file is not read any more
  };
  /// Calls `take` with each line that is new since the last call, up to so many that whoever takes
  /// them has much to do; when the trial has ended, also with a last one that lacks its newline.
  /// Throws invalid_argument for a line that is none of the protocol, after those before it, and
  /// failed_precondition for what is no file.
  Rest read(bool trial_has_ended, const Take& take);
  /// The lines that were taken are done with.
  void let_go_on() noexcept;

 private:
  /// False: there are more than may be taken now.
  bool take_lines(const Take& take);
  /// Up to that place in what was read.
  void take_line(const Take& take, std::size_t end);
  [[nodiscard]] bool is_too_much(const Fd& file);

  std::filesystem::path path_;
  Past past_;
  std::optional<std::uintmax_t> exempt_{};  // so many bytes were there at the first look
  std::uintmax_t offset_ = 0;               // up to which the file is read
  std::string partial_;                     // what was read and not taken, from taken_ on
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;  // there is no whole line before
  std::size_t at_once_ = 0;   // what the lines that were taken cost, since let_go_on()
  bool gave_up_ = false;
};

}  // namespace kolo::tune

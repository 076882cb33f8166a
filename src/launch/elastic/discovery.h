// Asks the user's script for the hosts of an elastic job, again and again, without waiting for it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/running_command.h"
#include "launch/hosts.h"

namespace kolo::launch::elastic {

/// One host per line: HOST, HOST:SLOTS or HOST slots=SLOTS; '#' starts a comment. A host without a
/// number has `slots`. A host that is named again counts once and is told to `warn`. No host at all
/// is an empty list. Throws invalid_argument naming the line that is wrong.
std::vector<Host> parse_discovered(std::string_view text, int slots,
                                   const std::function<void(const std::string&)>& warn);

struct DiscoveryOptions {
  std::string script;  ///< for sh -c
  int slots_per_host = 1;
  std::chrono::milliseconds interval{1000};  ///< between the end of one call and the next
  std::chrono::milliseconds limit{10'000};   ///< of one call
};

/// A call that fails, hangs or prints nonsense is told to `warn`, once for each kind in a row, and
/// changes nothing. What a call writes to standard error is passed on when it has ended, unless the
/// call before has written the same. One thread at a time.
class Discovery {
 public:
  Discovery(DiscoveryOptions options, std::function<void(const std::string&)> warn);

  /// To be polled for reading; -1 = nothing to read now.
  [[nodiscard]] int fd() const noexcept { return call_ ? call_->fd() : -1; }
  /// When work() has something to do in any case.
  [[nodiscard]] Deadline next() const;

  /// Reads, ends and starts the script as needed. Returns the hosts when a call was successful.
  std::optional<std::vector<Host>> work();
  /// What was wrong with the calls so far, if none was successful.
  [[nodiscard]] const std::string& first_failure() const noexcept { return first_failure_; }

 private:
  void start();
  std::optional<std::vector<Host>> end(const std::string& wrong);
  void fail(const std::string& text);
  void pass_errors_on();

  DiscoveryOptions options_;
  std::function<void(const std::string&)> warn_;
  std::unique_ptr<RunningCommand> call_;  // under way
  Fd errors_;                             // what it has written to standard error
  Deadline next_ = Deadline::after(std::chrono::nanoseconds(0));
  std::string last_warning_, first_failure_, last_errors_;
  bool has_succeeded_ = false;
};

}  // namespace kolo::launch::elastic

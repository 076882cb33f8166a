// `kolo` as a process that a test starts, reads, signals and waits for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/subprocess.h"

namespace kolo::test {

/// A little less than ctest gives a whole test (120 s): a wait that comes this far would have been
/// ended by it, and says what it waited for instead.
inline constexpr auto kPatience = std::chrono::seconds(100);

/// Looks again until `condition` holds; false when patience is over.
bool eventually(const std::function<bool()>& condition, std::chrono::seconds patience = kPatience);

/// A value that this test run alone has, for finding its processes again.
std::string unique_mark();

/// Processes whose environment holds NAME=VALUE, without zombies.
std::vector<pid_t> processes_with(const std::string& name, const std::string& value);

class KoloProcess {
 public:
  struct Options {
    std::vector<std::string> environment;  ///< NAME=VALUE on top of this process's
    std::string directory;
    bool close_output = false;  ///< nobody reads its standard output
  };

  /// Runs KOLO_PROGRAM with these arguments. Every process below it has the variable
  /// KOLO_TEST_MARK=mark().
  explicit KoloProcess(std::vector<std::string> arguments) : KoloProcess(arguments, Options()) {}
  KoloProcess(std::vector<std::string> arguments, Options options);
  /// Kills what is left.
  ~KoloProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::string& mark() const noexcept { return mark_; }

  void signal(int number) const;
  /// The exit status as a shell has it; -1 if it did not end in time.
  int wait(std::chrono::seconds patience = kPatience);

  /// What it has written so far.
  std::string out();
  std::string err();
  /// Waits until the text has come on standard output (or error).
  bool wait_for_out(const std::string& text);
  bool wait_for_err(const std::string& text);

  /// Its descendants, wherever they are on this machine; the launcher itself left out.
  [[nodiscard]] std::vector<pid_t> descendants() const;
  /// Waits until there are none.
  [[nodiscard]] bool nothing_left() const;

 private:
  void read_until_end(int fd, std::string& into);

  std::string mark_ = unique_mark();
  pid_t pid_ = -1;
  bool waited_ = false;
  int status_ = -1;
  Fd out_fd_, err_fd_;
  std::mutex mutex_;
  std::string out_, err_;  // guarded by mutex_
  std::thread out_thread_, err_thread_;
};

/// Runs to the end.
struct Finished {
  int status = -1;
  std::string out, err;
};
Finished run_kolo(std::vector<std::string> arguments, KoloProcess::Options options = {});

/// The lines of a text, sorted, for output whose order is free.
std::vector<std::string> sorted_lines(const std::string& text);

}  // namespace kolo::test

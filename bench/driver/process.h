// Programs started by a bench driver, each the head of a process group that ends with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bench {

class Process {
 public:
  /// Starts `command` (argv[0] is looked up in PATH) with additional environment NAME=VALUE;
  /// both outputs go to the file `log`. Throws std::runtime_error.
  Process(const std::vector<std::string>& command, const std::vector<std::string>& environment,
          const std::string& log);
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(Process&&) = delete;
  /// Ends the whole group: SIGTERM, after two seconds SIGKILL.
  ~Process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Has ended (and is reaped).
  bool ended();

  /// Waits for the end up to `seconds`; false if it has not come.
  bool wait(double seconds);

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
};

/// A process and all that descend from it.
std::vector<pid_t> family_of(pid_t pid);

/// CPU time another process has used so far, all its threads, in seconds; 0 if it is gone.
double cpu_seconds(pid_t pid);

/// The end of a text file, for error messages.
std::string tail_of(const std::string& path, std::size_t lines);

/// Share of the machine's CPU time that was not idle over `seconds` from now.
double busy_share(double seconds);

}  // namespace bench

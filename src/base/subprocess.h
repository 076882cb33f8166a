// Starts programs with exact argument lists: no shell is involved, and no descriptor is inherited
// by accident.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"

namespace kolo {

struct SpawnOptions {
  std::vector<std::string> argv;
  /// What is run; "" = argv[0]. Looked up in the new PATH unless it has a /.
  std::string program;
  std::vector<std::string> environment;  ///< NAME=VALUE, complete
  std::filesystem::path directory;       ///< "" = stay
  /// Descriptors of the child's standard streams; -1 = /dev/null for input, inherit for the others.
  int standard_input = -1, standard_output = -1, standard_error = -1;
  std::vector<int> keep;  ///< further descriptors that stay open, under the same numbers
  bool own_process_group = false;
  bool die_with_parent = false;   ///< SIGKILL when the thread that spawned it ends
  std::optional<cpu_set_t> cpus;  ///< processors it may use
};

/// A program that was started and not yet waited for. Waiting and killing is the owner's affair.
class Spawned {
 public:
  Spawned() = default;
  Spawned(pid_t pid, Fd verdict, std::string program)
      : pid_(pid), verdict_(std::move(verdict)), program_(std::move(program)) {}

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits until the program runs. Throws not_found (no such program or directory) or io; the
  /// child has then been reaped.
  void wait_until_running();

 private:
  pid_t pid_ = -1;
  Fd verdict_;  // closed by a successful exec; carries the reason of a failed one
  std::string program_;
};

/// Returns at once; whether the program could be run is known after wait_until_running(), so that
/// several starts overlap.
Spawned spawn(const SpawnOptions& options);

/// Where a program would be found. Throws not_found ("no such program", "not executable").
std::filesystem::path find_program(const std::string& name, const std::string& search_path,
                                   const std::filesystem::path& directory = {});

struct CommandResult {
  int status = 0;  ///< as from waitpid
  std::string output;
  std::string errors;
  [[nodiscard]] bool ok() const noexcept { return status == 0; }
};

/// Runs a short helper program to its end with this process's environment. Throws as
/// wait_until_running(), and timeout after having killed it. It reads from `standard_input`, or
/// nothing (-1).
CommandResult run_command(const std::vector<std::string>& argv, Deadline deadline,
                          int standard_input = -1);

/// This process's environment as NAME=VALUE.
std::vector<std::string> current_environment();

/// "exited with status 3", "was killed by signal 9 (Killed)"; "exited" for status 0.
std::string describe_wait_status(int status);
/// As shells have it: the status, or 128 + signal.
int exit_code_of(int status);

}  // namespace kolo

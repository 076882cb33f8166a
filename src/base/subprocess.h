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

/// Returns when the program runs. Waiting for its end and killing it is the caller's affair. Throws
/// not_found (no such program or directory) or io; nothing is left of the child then.
pid_t spawn(const SpawnOptions& options);

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
/// spawn(), and timeout after having killed it. It reads from `standard_input`, or nothing (-1).
CommandResult run_command(const std::vector<std::string>& argv, Deadline deadline,
                          int standard_input = -1);

/// This process's environment as NAME=VALUE.
std::vector<std::string> current_environment();

/// "exited with status 3", "was killed by signal 9 (Killed)"; "exited" for status 0.
std::string describe_wait_status(int status);
/// As shells have it: the status, or 128 + signal.
int exit_code_of(int status);

}  // namespace kolo

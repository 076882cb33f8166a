// The processes of a test's programs, and those they have left behind.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"

namespace kolo::test {

inline std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

/// A process and everything below it.
inline std::vector<pid_t> family(pid_t pid) {
  std::vector<pid_t> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const pid_t child : children_of(all[i])) all.push_back(child);
  return all;
}

/// Processes whose command line has this text. One that has ended has none.
inline std::vector<pid_t> processes_naming(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      if (read_file(entry.path() / "cmdline").find(text) != std::string::npos)
        found.push_back(std::stoi(pid));
    } catch (const Error&) {
      // It is gone.
    }
  }
  return found;
}

/// Waits for their ends. False, if some are still there after that.
inline bool all_gone(const std::string& text, Deadline deadline) {
  for (;;) {
    const auto left = processes_naming(text);
    if (left.empty()) return true;
    if (deadline.passed()) return false;
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, left.front(), 0)));
    pollfd event{process.get(), POLLIN, 0};
    if (process.valid()) ::poll(&event, 1, deadline.poll_timeout_ms());
  }
}

}  // namespace kolo::test

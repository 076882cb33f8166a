#include "exec/process_tree.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/files.h"

namespace kolo::exec {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// What /proc has of a process under this name; "" for one that is ending, or another user's.
std::string text_of(pid_t pid, std::string_view name) {
  try {
    return read_file(fmt::format("/proc/{}/{}", pid, name));
  } catch (const Error&) {
    return {};
  }
}

/// Parent of a process from /proc/PID/stat; 0 if it is gone or a zombie. A process whose first
/// thread has ended is shown as a zombie, too, and lives as long as it has other threads.
pid_t living_parent_of(pid_t pid) {
  const std::string stat = text_of(pid, "stat");
  // "pid (name) state ppid …", where the name may hold blanks and brackets.
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream rest(stat.substr(close + 1));
  char state = 'Z';
  pid_t parent = 0;
  rest >> state >> parent;
  if (state == 'X') return 0;
  if (state != 'Z') return parent;
  constexpr int kFieldsBetween = 15;  // from the parent to the number of threads
  std::string between;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> between;
  int threads = 0;
  rest >> threads;
  return threads > 1 ? parent : 0;
}

/// The environment of a process. Where its first thread has ended, any other one knows it.
std::string environment_of(pid_t pid) {
  std::string environment = text_of(pid, "environ");
  if (!environment.empty()) return environment;
  std::unique_ptr<DIR, CloseDirectory> threads(
      ::opendir(fmt::format("/proc/{}/task", pid).c_str()));
  if (!threads) return environment;
  while (const dirent* thread = ::readdir(threads.get()))
    if (thread->d_name[0] != '.')
      if (environment = text_of(pid, fmt::format("task/{}/environ", thread->d_name));
          !environment.empty())
        break;
  return environment;
}

/// Whether `mark` is one of the words of `words`, which are separated by '/'.
bool has_word(std::string_view words, std::string_view mark) {
  while (!words.empty()) {
    const auto slash = std::min(words.find('/'), words.size());
    if (words.substr(0, slash) == mark) return true;
    words.remove_prefix(std::min(slash + 1, words.size()));
  }
  return false;
}

/// The value of KOLO_TASK in entries that each end with a zero byte.
std::string_view marks_in(std::string_view environment) {
  while (!environment.empty()) {
    const auto end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    if (entry.size() > kMarkVariable.size() && entry.starts_with(kMarkVariable) &&
        entry[kMarkVariable.size()] == '=')
      return entry.substr(kMarkVariable.size() + 1);
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return {};
}

/// Parents and their children, of all processes.
std::multimap<pid_t, pid_t> living_children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  std::unique_ptr<DIR, CloseDirectory> directory(::opendir("/proc"));
  if (!directory) return children;
  while (const dirent* entry = ::readdir(directory.get())) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0)
      if (pid_t parent = living_parent_of(pid); parent > 0) children.emplace(parent, pid);
  }
  return children;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants() {
  const auto children = living_children_by_parent();
  std::vector<pid_t> found = {::getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

int signal_descendants(int signal) {
  const auto found = descendants();
  for (pid_t pid : found) ::kill(pid, signal);
  return static_cast<int>(found.size());
}

std::vector<pid_t> kill_descendants() {
  const Deadline deadline = Deadline::after(kLongestDeath);
  while (has_children()) {
    signal_descendants(SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!has_children()) break;
    if (deadline.passed()) return descendants();
    ::poll(nullptr, 0, 1);
  }
  return {};
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  if (!has_children()) return found;  // one cheap call, and often all there is to know
  try {
    std::istringstream list(read_file("/proc/thread-self/children"));
    for (pid_t child = 0; list >> child;) found.push_back(child);
    return found;
  } catch (const Error&) {
    // The kernel was built without these lists.
  }
  const auto all = living_children_by_parent();
  const auto [first, last] = all.equal_range(::getpid());
  for (auto child = first; child != last; ++child) found.push_back(child->second);
  return found;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::string mark_entry(const std::vector<std::string>& environment, std::string_view mark) {
  for (const auto& entry : environment)
    if (const auto outer = marks_in(entry); !outer.empty())
      return fmt::format("{}={}/{}", kMarkVariable, outer, mark);
  return fmt::format("{}={}", kMarkVariable, mark);
}

Membership membership_of(pid_t pid, std::string_view mark) {
  const std::string environment = environment_of(pid);
  if (has_word(marks_in(environment), mark)) return Membership::yes;
  if (environment.empty() && text_of(pid, "cmdline").empty()) return Membership::unknown;
  return Membership::no;
}

}  // namespace kolo::exec

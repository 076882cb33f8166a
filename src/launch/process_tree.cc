#include "launch/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::launch {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Parent of a process from /proc/PID/stat; 0 if it is gone or a zombie.
pid_t living_parent_of(pid_t pid) {
  std::string stat;
  try {
    stat = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const Error&) {
    return 0;
  }
  // "pid (name) state ppid …", where the name may hold blanks and brackets.
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream rest(stat.substr(close + 1));
  char state = 'Z';
  pid_t parent = 0;
  rest >> state >> parent;
  return state == 'Z' || state == 'X' ? 0 : parent;
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

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  bool listed = true;
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream list(thread.path() / "children");
    listed = listed && list.is_open();
    for (pid_t child = 0; list >> child;) found.push_back(child);
  }
  if (listed && !none) return found;
  // The kernel was built without these lists.
  found.clear();
  const auto all = living_children_by_parent();
  const auto [first, last] = all.equal_range(::getpid());
  for (auto child = first; child != last; ++child) found.push_back(child->second);
  return found;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace kolo::launch

#include "driver/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {

Process::Process(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment, const std::string& log) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot start " + command.front());
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const int in = ::open("/dev/null", O_RDONLY);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    for (const auto& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
    ::execvp(argv[0], argv.data());
    ::dprintf(2, "cannot execute %s\n", argv[0]);
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), reaped_(other.reaped_) {}

Process::~Process() {
  if (pid_ < 0) return;
  if (!reaped_) {
    ::kill(-pid_, SIGTERM);
    wait(2.0);
  }
  ::kill(-pid_, SIGKILL);
  if (!reaped_) ::waitpid(pid_, nullptr, 0);
}

bool Process::ended() {
  if (!reaped_ && ::waitpid(pid_, nullptr, WNOHANG) == pid_) reaped_ = true;
  return reaped_;
}

bool Process::wait(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!ended()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::vector<pid_t> family_of(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto child = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (child <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line, state;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;  // gone in between
    pid_t parent = 0;
    std::istringstream(line.substr(name_end + 1)) >> state >> parent;
    children.emplace(parent, child);
  }
  std::vector<pid_t> family = {pid};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const auto [begin, end] = children.equal_range(family[i]);
    for (auto child = begin; child != end; ++child) family.push_back(child->second);
  }
  return family;
}

double cpu_seconds(pid_t pid) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0.0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::string tail_of(const std::string& path, std::size_t lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const auto& line : last) text += "    " + line + "\n";
  return text;
}

namespace {

/// Busy and total jiffies since boot.
std::pair<double, double> machine_time() {
  std::ifstream file("/proc/stat");
  std::string name;
  double busy = 0, total = 0, value = 0;
  file >> name;
  for (int field = 0; field < 8 && file >> value; ++field) {
    total += value;
    if (field != 3 && field != 4) busy += value;  // idle and iowait
  }
  return {busy, total};
}

}  // namespace

double busy_share(double seconds) {
  const auto [busy_before, total_before] = machine_time();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto [busy_after, total_after] = machine_time();
  return total_after > total_before ? (busy_after - busy_before) / (total_after - total_before) : 0;
}

}  // namespace bench

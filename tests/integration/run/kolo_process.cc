#include "kolo_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::test {
namespace {

bool is_alive(pid_t pid) {
  try {
    const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
    const char state = stat.at(stat.rfind(')') + 2);
    return state != 'Z' && state != 'X';
  } catch (const std::exception&) {
    return false;
  }
}

struct Pipe {
  Fd read, write;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::seconds patience) {
  const Deadline deadline = Deadline::after(patience);
  while (!condition()) {
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

std::string unique_mark() {
  static std::atomic<int> count{0};
  return fmt::format("{}.{}.{}", ::getpid(), Deadline::Clock::now().time_since_epoch().count(),
                     count++);
}

std::vector<pid_t> processes_with(const std::string& name, const std::string& value) {
  const std::string wanted = name + "=" + value;
  std::vector<pid_t> found;
  DIR* directory = ::opendir("/proc");
  while (const dirent* entry = ::readdir(directory)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    // Entries end with a zero byte.
    if (("\0" + text).find(wanted + '\0') != std::string::npos && is_alive(pid))
      found.push_back(pid);
  }
  ::closedir(directory);
  return found;
}

KoloProcess::KoloProcess(std::vector<std::string> arguments, Options options) {
  SpawnOptions spawn_options;
  spawn_options.argv = {KOLO_PROGRAM};
  spawn_options.argv.insert(spawn_options.argv.end(), arguments.begin(), arguments.end());
  // Later entries would not win over earlier ones of the same name.
  auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  options.environment.push_back("KOLO_TEST_MARK=" + mark_);
  for (const auto& entry : current_environment())
    if (std::none_of(options.environment.begin(), options.environment.end(),
                     [&](const auto& own) { return name_of(own) == name_of(entry); }))
      spawn_options.environment.push_back(entry);
  spawn_options.environment.insert(spawn_options.environment.end(), options.environment.begin(),
                                   options.environment.end());
  spawn_options.directory = options.directory;
  Pipe out = make_pipe(), err = make_pipe();
  spawn_options.standard_output = out.write.get();
  spawn_options.standard_error = err.write.get();
  spawn_options.own_process_group = true;
  pid_ = spawn(spawn_options);
  out.write.reset();
  err.write.reset();
  out_fd_ = std::move(out.read);
  err_fd_ = std::move(err.read);
  if (options.close_output)
    out_fd_.reset();
  else
    out_thread_ = std::thread([this] { read_until_end(out_fd_.get(), out_); });
  err_thread_ = std::thread([this] { read_until_end(err_fd_.get(), err_); });
}

KoloProcess::~KoloProcess() {
  if (!waited_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (pid_t pid : descendants()) ::kill(pid, SIGKILL);
  if (out_thread_.joinable()) out_thread_.join();
  err_thread_.join();
}

void KoloProcess::read_until_end(int fd, std::string& into) {
  char chunk[65536];
  while (true) {
    ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    std::lock_guard lock(mutex_);
    into.append(chunk, static_cast<std::size_t>(got));
  }
}

void KoloProcess::signal(int number) const { ::kill(pid_, number); }

int KoloProcess::wait(std::chrono::seconds patience) {
  if (waited_) return status_;
  int status = 0;
  if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, patience)) return -1;
  waited_ = true;
  status_ = exit_code_of(status);
  // All that it wrote is read, unless a descendant holds the pipe open, which would be a defect.
  if (nothing_left()) {
    if (out_thread_.joinable()) out_thread_.join();
    err_thread_.join();
    err_thread_ = std::thread([] {});
  }
  return status_;
}

std::string KoloProcess::out() {
  std::lock_guard lock(mutex_);
  return out_;
}
std::string KoloProcess::err() {
  std::lock_guard lock(mutex_);
  return err_;
}

bool KoloProcess::wait_for_out(const std::string& text) {
  return eventually([&] { return out().find(text) != std::string::npos; });
}
bool KoloProcess::wait_for_err(const std::string& text) {
  return eventually([&] { return err().find(text) != std::string::npos; });
}

std::vector<pid_t> KoloProcess::descendants() const {
  auto found = processes_with("KOLO_TEST_MARK", mark_);
  std::erase(found, pid_);
  return found;
}

bool KoloProcess::nothing_left() const {
  return eventually([&] { return descendants().empty(); });
}

Finished run_kolo(std::vector<std::string> arguments, KoloProcess::Options options) {
  KoloProcess process(std::move(arguments), std::move(options));
  Finished finished;
  finished.status = process.wait();
  finished.out = process.out();
  finished.err = process.err();
  return finished;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace kolo::test

#include "jobs/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/errors.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/binding.h"
#include "exec/environment.h"

namespace kolo::jobs {
namespace {

constexpr std::size_t kTailBytes = 1024;

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// The last of what a task wrote.
std::string tail_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const auto bytes = std::min<off_t>(size, kTailBytes);
  std::string text(static_cast<std::size_t>(std::max<off_t>(bytes, 0)), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), size - bytes);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  // The database keeps texts: no zero bytes.
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace

Worker::Worker(Fd in, Fd out)
    : in_(std::move(in)), out_(std::move(out)), environment_(current_environment()) {
  set_non_blocking(in_.get());
  set_non_blocking(out_.get());
  ::signal(SIGPIPE, SIG_IGN);
  // Ctrl-C in the launcher's terminal, or a batch system that ends all processes of an allocation:
  // the launcher decides what becomes of the tasks, and its end is ours.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  signals_ = Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) throw_errno("cannot watch for the ends of tasks");
}

int Worker::run() {
  outbox_ = kWorkerGreeting;
  send(frame(WorkerMessage::hello, encode(WorkerHello{host_name(), exec::usable_processors()})));
  while (!launcher_gone_ || !tasks_.empty()) {
    flush();
    pollfd polls[] = {{launcher_gone_ ? -1 : in_.get(), POLLIN, 0},
                      {signals_.get(), POLLIN, 0},
                      {outbox_.empty() ? -1 : out_.get(), POLLOUT, 0}};
    ::poll(polls, std::size(polls), poll_timeout_ms());
    if (polls[0].revents != 0) read_commands();
    if (polls[1].revents != 0) reap();
    kill_late();
  }
  return 0;
}

int Worker::poll_timeout_ms() const {
  int least = -1;
  for (const auto& [leader, task] : tasks_)
    if (task.kill_at) {
      const int left = task.kill_at->poll_timeout_ms();
      least = least < 0 ? left : std::min(least, left);
    }
  return least;
}

void Worker::read_commands() {
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(in_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    launcher_gone_ = true;
    outbox_.clear();
    for (auto& [leader, task] : tasks_) terminate(leader, task);
    return;
  }
  parser_.feed({chunk.data(), static_cast<std::size_t>(got)});
  while (auto command = parser_.next()) handle(*command);
}

void Worker::handle(const Frame& command) {
  switch (static_cast<WorkerMessage>(command.type)) {
    case WorkerMessage::environment:
      environment_ = exec::merge_environment(environment_, decode_environment(command.payload));
      break;
    case WorkerMessage::start: start(decode_start(command.payload)); break;
    case WorkerMessage::end: {
      const std::uint64_t number = decode_task(command.payload);
      for (auto& [leader, task] : tasks_)
        if (task.number == number) terminate(leader, task);
      break;
    }
    default: throw_error(ErrorCode::corruption, "a command of kind {} is unknown", command.type);
  }
}

pid_t Worker::spawn_task(const StartTask& task) {
  SpawnOptions options;
  options.argv = task.argv;
  options.environment = exec::merge_environment(environment_, task.environment);
  options.directory = task.directory;
  options.own_process_group = true;
  options.die_with_parent = true;
  const std::string path = task.output.empty() ? "/dev/null" : task.output;
  const Fd output(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!output.valid()) throw_errno("cannot write to {}", path);
  options.standard_output = options.standard_error = output.get();
  if (!task.cores.empty()) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const int core : task.cores)
      if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &cpus);
    options.cpus = cpus;
  }
  Spawned child = spawn(options);
  child.wait_until_running();
  return child.pid();
}

void Worker::start(const StartTask& task) {
  try {
    const pid_t leader = spawn_task(task);
    tasks_[leader] = {task.task, task.output, std::chrono::milliseconds(task.grace_ms),
                      std::nullopt};
  } catch (const Error& error) {
    send(frame(WorkerMessage::failed, encode(TaskFailure{task.task, error.message()})));
  }
}

void Worker::terminate(pid_t leader, Task& task) {
  if (task.kill_at) return;
  ::kill(-leader, SIGTERM);
  task.kill_at = Deadline::after(task.grace);
}

void Worker::kill_late() {
  for (auto& [leader, task] : tasks_)
    if (task.kill_at && task.kill_at->passed()) {
      ::kill(-leader, SIGKILL);
      // Should it not go at once (a disk that does not answer): again after a while.
      task.kill_at = Deadline::after(std::chrono::seconds(5));
    }
}

void Worker::reap() {
  signalfd_siginfo ignored;
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const pid_t pid = info.si_pid;
    const auto found = tasks_.find(pid);
    // While its leader is not yet waited for, the group's number cannot be somebody else's.
    if (found != tasks_.end()) ::kill(-pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (found == tasks_.end()) continue;
    TaskEnd end{found->second.number, status, {}};
    if (status != 0 && !found->second.output.empty()) end.tail = tail_of(found->second.output);
    send(frame(WorkerMessage::ended, encode(end)));
    tasks_.erase(found);
  }
}

void Worker::send(std::string_view message) {
  outbox_ += message;
  outbox_ += frame(WorkerMessage::line, "\n");
}

void Worker::flush() {
  while (!outbox_.empty() && !launcher_gone_) {
    const ssize_t written = ::write(out_.get(), outbox_.data(), outbox_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) {  // its end of the pipe is closed: the other one will be, too
      outbox_.clear();
      return;
    }
    outbox_.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace kolo::jobs

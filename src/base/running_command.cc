// A stream is read only when poll() has something for it, so that its pipe may be a usual one that
// blocks. The end of the program counts once all streams have ended: until then a child of it may
// have something to say. A pidfd tells that end; where the kernel refuses one, wait() looks from
// time to time.
#include "base/running_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "base/pipe.h"

namespace kolo {
namespace {

constexpr int kLookMs = 20;

/// Appends what can be read now; closes the stream at its end.
void take(Fd& stream, std::string& into) {
  pollfd poll{stream.get(), POLLIN, 0};
  if (!stream.valid() || ::poll(&poll, 1, 0) <= 0) return;
  char chunk[65536];
  const ssize_t got = ::read(stream.get(), chunk, sizeof chunk);
  if (got > 0) into.append(chunk, static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR)) stream.reset();
}

}  // namespace

RunningCommand::RunningCommand(CommandOptions options)
    : program_(options.argv.at(0)), has_group_(options.own_process_group) {
  Pipe output, errors;
  if (options.gathers_output) {
    output = make_pipe();
    options.standard_output = output.write.get();
  }
  if (options.gathers_errors) {
    errors = make_pipe();
    options.standard_error = errors.write.get();
  }
  pid_ = spawn(options);
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  end_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

RunningCommand::~RunningCommand() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  kill_group();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void RunningCommand::kill_group() const noexcept {
  if (has_group_) ::kill(-pid_, SIGKILL);
}

int RunningCommand::fd() const noexcept {
  for (const Fd* stream : {&output_, &errors_})
    if (stream->valid()) return stream->get();
  return end_.get();
}

bool RunningCommand::work() {
  take(output_, result_.output);
  take(errors_, result_.errors);
  if (pid_ < 0) return true;
  if (output_.valid() || errors_.valid()) return false;
  // Look first and take later: until it is waited for, nobody else gets its number.
  siginfo_t info{};
  const bool is_known =
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (is_known ? info.si_pid == 0 : errno == EINTR) return false;
  kill_group();  // what it may have left behind
  ::waitpid(pid_, &result_.status, 0);
  pid_ = -1;
  return true;
}

void RunningCommand::wait(std::initializer_list<RunningCommand*> commands, Deadline deadline) {
  while (true) {
    std::vector<pollfd> polls;
    const RunningCommand* running = nullptr;
    int timeout = deadline.poll_timeout_ms();
    for (RunningCommand* command : commands) {
      if (command->work()) continue;
      if (running == nullptr) running = command;
      for (const Fd* stream : {&command->output_, &command->errors_})
        if (stream->valid()) polls.push_back({stream->get(), POLLIN, 0});
      if (command->output_.valid() || command->errors_.valid()) continue;
      polls.push_back({command->end_.get(), POLLIN, 0});
      if (!command->end_.valid()) timeout = timeout < 0 ? kLookMs : std::min(timeout, kLookMs);
    }
    if (running == nullptr) return;
    if (deadline.passed())
      throw_error(ErrorCode::timeout, "{} did not end in time", running->program_);
    ::poll(polls.data(), polls.size(), timeout);
  }
}

CommandResult run_command(const std::vector<std::string>& argv, Deadline deadline,
                          int standard_input) {
  CommandOptions options;
  options.argv = argv;
  options.environment = current_environment();
  options.standard_input = standard_input;
  RunningCommand command(std::move(options));
  RunningCommand::wait({&command}, deadline);
  return command.result();
}

}  // namespace kolo

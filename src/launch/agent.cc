#include "launch/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/env.h"
#include "base/errors.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "comm/rendezvous/secret.h"
#include "launch/binding.h"
#include "launch/environment.h"
#include "launch/process_tree.h"

namespace kolo::launch {
namespace {

using namespace std::chrono_literals;

/// Ranks' output is not read while this much waits for the launcher: it slows down who writes.
constexpr std::size_t kOutboxLimit = 4U << 20;
constexpr auto kKillAgain = 100ms;
/// A process in uninterruptible sleep cannot be killed; after so many attempts it is left alone.
constexpr int kKillAttempts = 100;

Fd make_signal_fd() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignored it would cost us the ranks' statuses
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) throw_errno("cannot create a signalfd");
  return fd;
}

struct Pipe {
  Fd read, write;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  set_non_blocking(ends[0]);  // ours; the rank's end blocks as programs expect
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Agent::Agent(Fd in, Fd out) : in_(std::move(in)), out_(std::move(out)), signals_(make_signal_fd()) {
  set_non_blocking(in_.get());
  set_non_blocking(out_.get());
  adopt_orphans();
}

int Agent::run() {
  say_hello();
  while (!finished()) {
    const bool may_read = outbox_.size() < kOutboxLimit || out_broken_;
    std::vector<pollfd> polls = {{in_.get(), POLLIN, 0},
                                 {signals_.get(), POLLIN, 0},
                                 {outbox_.empty() || out_broken_ ? -1 : out_.get(), POLLOUT, 0}};
    for (const Rank& rank : ranks_) {
      polls.push_back({may_read ? rank.out.get() : -1, POLLIN, 0});
      polls.push_back({may_read ? rank.err.get() : -1, POLLIN, 0});
    }
    if (::poll(polls.data(), polls.size(), poll_timeout_ms()) < 0) continue;
    if (polls[2].revents != 0) flush();
    // Output before exits: what a rank wrote last is read before its end is told.
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (polls[3 + 2 * i].revents != 0) read_output(ranks_[i], Stream::out);
      if (polls[4 + 2 * i].revents != 0) read_output(ranks_[i], Stream::err);
    }
    if (polls[1].revents != 0) {
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) terminate();
      reap();
    }
    if (polls[0].revents != 0) read_commands();
    if (next_step_ && next_step_->passed()) kill_all();
  }
  drain();
  send(frame(AgentMessage::done));
  flush_to_the_end();
  return 0;
}

void Agent::say_hello() {
  AgentHello hello;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  hello.host = name;
  if (auto connection = environment("SSH_CONNECTION"))  // "client-address client-port …"
    hello.from = connection->substr(0, connection->find(' '));
  hello.processors = usable_processors();
  send(kAgentGreeting);
  send(frame(AgentMessage::hello, encode(hello)));
}

int Agent::poll_timeout_ms() const { return next_step_ ? next_step_->poll_timeout_ms() : -1; }

void Agent::read_commands() {
  char chunk[65536];
  while (in_.valid()) {
    ssize_t got = ::read(in_.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {  // the launcher is gone
      in_.reset();
      terminate();
      return;
    }
    parser_.feed({chunk, static_cast<std::size_t>(got)});
    while (auto command = parser_.next()) handle(*command);
  }
}

void Agent::handle(const Frame& command) {
  switch (static_cast<AgentMessage>(command.type)) {
    case AgentMessage::start: start(decode_start_job(command.payload)); break;
    case AgentMessage::stop: terminate(); break;
    case AgentMessage::kill: kill_all(); break;
    default: throw_error(ErrorCode::corruption, "unknown command {}", command.type);
  }
}

void Agent::start(const StartJob& job) {
  if (phase_ != Phase::waiting) return;  // told to stop before it began, or a second start
  phase_ = Phase::running;
  grace_ = std::chrono::milliseconds(job.grace_ms);
  try {
    start_ranks(job);
    send(frame(AgentMessage::started));
  } catch (const Error& error) {
    send(frame(AgentMessage::start_failed, error.message()));
    terminate();
  }
}

void Agent::start_ranks(const StartJob& job) {
  secret_ = comm::rendezvous::make_secret_file(comm::rendezvous::Secret::from_bytes(job.secret));
  const int count = static_cast<int>(job.ranks.size());
  const auto cpus = processors_for_ranks(job.bind_to, count);
  const auto common =
      merge_environment(without_launcher_variables(current_environment()), job.environment);
  std::vector<Spawned> spawned;
  for (int i = 0; i < count; ++i) {
    const RankStart& start = job.ranks[static_cast<std::size_t>(i)];
    Pipe out = make_pipe(), err = make_pipe();
    SpawnOptions options;
    options.argv = job.argv;
    options.directory = job.directory;
    options.environment = merge_environment(common, start.environment);
    if (!cpus.empty()) options.cpus = cpus[static_cast<std::size_t>(i)];
    add_host_variables(options.environment, secret_.get(), ::getpid(),
                       threads_for_rank(options.cpus, count));
    options.standard_output = out.write.get();
    options.standard_error = err.write.get();
    options.keep = {secret_.get()};
    options.own_process_group = true;
    options.die_with_parent = true;
    spawned.push_back(spawn(options));
    ranks_.push_back(
        {start.rank, spawned.back().pid(), std::move(out.read), std::move(err.read), false});
  }
  std::optional<Error> first;
  for (std::size_t i = 0; i < spawned.size(); ++i) {
    try {
      spawned[i].wait_until_running();
    } catch (const Error& error) {
      ranks_[i].exited = true;  // and reaped
      if (!first) first = error;
    }
  }
  if (first) throw *first;
}

void Agent::read_output(Rank& rank, Stream stream) {
  Fd& fd = stream == Stream::out ? rank.out : rank.err;
  char chunk[65536];
  ssize_t got;
  do {
    got = ::read(fd.get(), chunk, sizeof chunk);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    fd.reset();
    got = 0;  // the end is told by an empty piece
  }
  send(frame(AgentMessage::output,
             encode(RankOutput{rank.number, stream, {chunk, static_cast<std::size_t>(got)}})));
}

void Agent::reap() {
  while (true) {
    // Look first and take later: while the rank is not yet waited for, its number and its group's
    // cannot be anybody else's, and what it left behind in its group can be told to end.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const bool is_rank = std::any_of(ranks_.begin(), ranks_.end(),
                                     [&](const Rank& rank) { return rank.pid == info.si_pid; });
    if (is_rank) ::kill(-info.si_pid, SIGTERM);
    int status = 0;
    if (::waitpid(info.si_pid, &status, 0) == info.si_pid) note_exit(info.si_pid, status);
  }
}

void Agent::note_exit(pid_t pid, int status) {
  for (Rank& rank : ranks_) {
    if (rank.pid != pid || rank.exited) continue;
    rank.exited = true;
    send(frame(AgentMessage::exited, encode(RankExit{rank.number, status})));
  }
}

void Agent::terminate() {
  if (phase_ == Phase::terminating || phase_ == Phase::killing) return;
  phase_ = Phase::terminating;
  if (signal_descendants(SIGTERM) > 0) next_step_ = Deadline::after(grace_);
}

void Agent::kill_all() {
  phase_ = Phase::killing;
  ++kill_attempts_;
  // Again until nothing is left: a process may have forked between looking and killing.
  if (signal_descendants(SIGKILL) > 0 && kill_attempts_ < kKillAttempts)
    next_step_ = Deadline::after(kKillAgain);
  else
    next_step_.reset();
}

bool Agent::finished() {
  if (phase_ == Phase::waiting) return false;
  if (!std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.exited; }))
    return phase_ == Phase::killing && kill_attempts_ >= kKillAttempts;
  if (!has_children()) return true;
  reap();
  if (!has_children()) return true;
  terminate();  // what ranks left behind
  return phase_ == Phase::killing && kill_attempts_ >= kKillAttempts;
}

void Agent::drain() {
  // Nobody is left to write, so what can be read now is all there is.
  for (Rank& rank : ranks_)
    for (Stream stream : {Stream::out, Stream::err}) {
      Fd& fd = stream == Stream::out ? rank.out : rank.err;
      while (fd.valid()) {
        pollfd poll{fd.get(), POLLIN, 0};
        if (::poll(&poll, 1, 0) <= 0) break;
        read_output(rank, stream);
        if (outbox_.size() > kOutboxLimit) flush_to_the_end();
      }
    }
}

void Agent::send(std::string_view bytes) {
  if (out_broken_) return;
  const bool idle = outbox_.empty();
  outbox_.append(bytes);
  if (idle) flush();
}

void Agent::flush() {
  std::size_t sent = 0;
  while (sent < outbox_.size()) {
    ssize_t written = ::write(out_.get(), outbox_.data() + sent, outbox_.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {
      out_broken_ = true;
      outbox_.clear();
      return;
    }
    sent += static_cast<std::size_t>(written);
  }
  outbox_.erase(0, sent);
}

void Agent::flush_to_the_end() {
  while (!outbox_.empty() && !out_broken_) {
    pollfd poll{out_.get(), POLLOUT, 0};
    ::poll(&poll, 1, -1);
    flush();
  }
}

}  // namespace kolo::launch

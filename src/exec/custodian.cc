// A turn of run() sends what has gathered, waits in one poll() for signals, owners and the output
// of tasks, and then asks the TaskTable which tasks have ended. What a task wrote is read before
// its end is told: drain() takes all of it, because nobody is left to write then. A child that has
// ended is looked at before it is waited for, while its number is still its own (reap). What owners
// order is in custodian_owners.cc.
#include "exec/custodian.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "exec/binding.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Tasks' output is not read while this much waits for their owner: it slows down who writes.
constexpr std::size_t kOutboxLimit = 4U << 20;
/// What a failed task said last.
constexpr std::size_t kTailBytes = 2048;
/// A custodian that ends gives its owners this long to take what it still has to say.
constexpr auto kLastWords = 2s;

/// SIGTERM comes from the guard when that is killed, or ends a custodian that listens. Other
/// signals of a terminal or a batch system are for the owner: it decides, and its end is ours.
Fd make_signal_fd() {
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignored it would cost us the tasks' statuses
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) throw_errno("cannot create a signalfd");
  return fd;
}

}  // namespace

Custodian::Custodian(Fd family_lock)
    : signals_(make_signal_fd()),
      family_lock_(std::move(family_lock)),
      mark_prefix_(fmt::format("{}.{:x}.", ::getpid(),
                               Clock::now().time_since_epoch().count() & 0xffffffff)),
      parent_(::getppid()),
      environment_(without_launcher_variables(current_environment())) {
  adopt_orphans();
}

void Custodian::serve(Channel channel) { add_owner(std::move(channel), /*is_bound=*/true); }

void Custodian::listen(Fd listener, Standing standing) {
  listener_ = std::move(listener);
  ledger_ = Ledger(standing.has, usable_processor_numbers());
  standing_ = std::move(standing);
}

int Custodian::run() {
  while (!is_over()) {
    flush();
    wait_for_events(Clock::now());
    const Time now = Clock::now();
    lose_silent_owners(now);
    tell_ends(now);
    obey_those_that_waited();
    settle_reservations();
    end_if_idle(now);
  }
  flush();
  // Those who threw their mark away.
  const auto left = kill_descendants();
  for (const pid_t process : left)
    log::warning("process {} cannot be killed, and is left behind", process);
  if (family_of_host_.lock.valid() && left.empty()) ::unlink(family_of_host_.file.c_str());
  if (standing_ && !standing_->note.empty()) ::unlink(standing_->note.c_str());
  if (standing_) log::info("nothing of the tasks is left; the custodian ends");
  flush();
  flush_to_the_end();
  return 0;
}

bool Custodian::is_over() const {
  if (listener_.valid()) return false;
  return !has_bound_owner() && table_.empty();
}

bool Custodian::has_bound_owner() const {
  return std::any_of(owners_.begin(), owners_.end(), [](const auto& entry) {
    return entry.second.is_bound && !entry.second.is_finished && !entry.second.channel.closed();
  });
}

int Custodian::poll_timeout_ms(Time now) const {
  std::optional<Time> next = table_.next_look();
  for (const auto& [id, owner] : owners_)
    if (owner.lost_at && (!next || *owner.lost_at < *next)) next = owner.lost_at;
  for (const auto& other : {accept_again_, idle_until_})
    if (other && (!next || *other < *next)) next = other;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Custodian::wait_for_events(Time now) {
  if (accept_again_ && *accept_again_ <= now) accept_again_.reset();
  std::vector<pollfd> polls = {{signals_.get(), POLLIN, 0},
                               {accept_again_ ? -1 : listener_.get(), POLLIN, 0}};
  std::vector<OwnerId> owners;
  for (const auto& [id, owner] : owners_) {
    owners.push_back(id);
    polls.push_back({owner.channel.read_fd(), POLLIN, 0});
    polls.push_back({owner.channel.write_fd(), POLLOUT, 0});
  }
  const std::size_t first_output = polls.size();
  std::vector<TaskKey> writers;
  for (const auto& [key, outputs] : outputs_) {
    if (!outputs.out.valid() && !outputs.err.valid()) continue;
    const auto owner = owners_.find(key.first);
    const bool may_read =
        owner == owners_.end() || owner->second.channel.pending_bytes() < kOutboxLimit;
    writers.push_back(key);
    polls.push_back({may_read ? outputs.out.get() : -1, POLLIN, 0});
    polls.push_back({may_read ? outputs.err.get() : -1, POLLIN, 0});
  }
  if (::poll(polls.data(), polls.size(), poll_timeout_ms(now)) <= 0) return;
  // Output before ends: what a task wrote last is read before its end is told.
  for (std::size_t i = 0; i < writers.size(); ++i) {
    Outputs& outputs = outputs_.at(writers[i]);
    if (polls[first_output + 2 * i].revents != 0) read_output(writers[i], outputs, Stream::out);
    if (polls[first_output + 2 * i + 1].revents != 0) read_output(writers[i], outputs, Stream::err);
  }
  if (polls[0].revents != 0) take_signals();
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (polls[2 + 2 * i].revents != 0) read_orders(owners[i]);
  if (polls[1].revents != 0) accept_owners();
}

// --- tasks ---

void Custodian::start(OwnerId id, Owner& owner, Task task) {
  std::vector<Fd> passed;
  for (std::size_t i = 0; i < task.descriptors.size(); ++i)
    passed.push_back(owner.channel.take_descriptor());
  try {
    if (table_.contains(id, task.id))
      throw_error(ErrorCode::already_exists, "a task numbered {} runs already", task.id);
    if (std::any_of(passed.begin(), passed.end(), [](const Fd& fd) { return !fd.valid(); }))
      throw_error(ErrorCode::unsupported,
                  "descriptors can be passed to tasks on the owner's machine only");
    give_from_reservation(id, task);
    TaskGround ground{
        owner.environment.empty() ? environment_ : owner.environment,
        mark_prefix_ + std::to_string(next_mark_++),
        family_of_host_.lock.valid() ? family_of_host_.lock.get() : family_lock_.get()};
    if (!task.secret.empty()) {
      Fd& file = owner.secrets[task.secret];
      if (!file.valid()) file = make_secret_file(Secret::from_bytes(task.secret));
      ground.secret = file.get();
    }
    StartedTask started = start_task(task, passed, ground);
    outputs_[{id, task.id}] = {std::move(started.out),
                               std::move(started.err),
                               std::move(started.said_in),
                               started.said_from,
                               task.tell_exit,
                               task.reservation,
                               owner.family};
    table_.add(id, task, started.leader, std::move(ground.mark));
  } catch (const Error& error) {
    tell(id, frame(Kind::ended, encode(TaskEnd{task.id, 0, {}, error.message()})));
  }
}

void Custodian::read_output(TaskKey key, Outputs& outputs, Stream stream) {
  Fd& fd = stream == Stream::out ? outputs.out : outputs.err;
  std::array<char, 65536> chunk;
  ssize_t got = 0;
  do {
    got = ::read(fd.get(), chunk.data(), chunk.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    fd.reset();
    got = 0;  // the end is told by an empty piece
  }
  tell(key.first,
       frame(Kind::output,
             encode(Output{key.second, stream, {chunk.data(), static_cast<std::size_t>(got)}})));
}

/// Nobody is left to write, so what can be read now is all there is.
void Custodian::drain(TaskKey key, Outputs& outputs) {
  for (const Stream stream : {Stream::out, Stream::err}) {
    const Fd& fd = stream == Stream::out ? outputs.out : outputs.err;
    for (;;) {
      pollfd poll{fd.get(), POLLIN, 0};
      if (!fd.valid() || ::poll(&poll, 1, 0) <= 0) break;
      read_output(key, outputs, stream);
    }
  }
}

void Custodian::take_signals() {
  // One read takes all that wait: at most one of each kind.
  std::array<signalfd_siginfo, 2> infos;
  const ssize_t got = ::read(signals_.get(), infos.data(), sizeof infos);
  for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof infos[0]; ++i) {
    // A batch system that cancels a job sends it to every process; only the guard's end and the
    // request to a custodian that listens are meant.
    if (infos[i].ssi_signo != SIGTERM || (!listener_.valid() && ::getppid() == parent_)) continue;
    shut_down_because("SIGTERM has come");
  }
  reap();
}

void Custodian::reap() {
  std::vector<TaskTable::Event> exits;
  for (;;) {
    // Look first and take later: see TaskTable::about_to_reap.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    table_.about_to_reap(info.si_pid);
    int status = 0;
    if (::waitpid(info.si_pid, &status, 0) != info.si_pid) continue;
    if (const auto exit = table_.reaped(info.si_pid, status, Clock::now())) exits.push_back(*exit);
  }
  // The kernel gives them in the order of their starts. Whoever was killed is told first: others
  // may have ended because they saw it, and owners take the first failure for the cause.
  std::stable_partition(exits.begin(), exits.end(),
                        [](const auto& exit) { return WIFSIGNALED(exit.status); });
  for (const auto& exit : exits)
    if (outputs_.at({exit.owner, exit.id}).tell_exit)
      tell(exit.owner, frame(Kind::exited, encode(Exited{exit.id, exit.status})));
}

void Custodian::tell_ends(Time now) {
  for (auto& event : table_.look(now)) {
    const auto found = outputs_.find({event.owner, event.id});
    Outputs& outputs = found->second;
    drain(found->first, outputs);
    TaskEnd end{event.id, event.status, {}, std::move(event.error)};
    if (event.status != 0 && !outputs.said_in.empty())
      end.tail = tail_of_file(outputs.said_in, kTailBytes, outputs.said_from);
    tell(event.owner, frame(Kind::ended, encode(end)));
    outputs_.erase(found);
  }
}

void Custodian::tell(OwnerId owner, std::string_view message) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;  // it is gone
  found->second.channel.send(message);
  found->second.has_news = true;
}

void Custodian::flush_to_the_end() {
  const Time until = Clock::now() + kLastWords;
  for (auto& [id, owner] : owners_)
    while (owner.channel.write_fd() >= 0 && Clock::now() < until) {
      pollfd poll{owner.channel.write_fd(), POLLOUT, 0};
      ::poll(&poll, 1, 100);
      owner.channel.flush();
    }
}

void Custodian::flush() {
  for (auto& [id, owner] : owners_) {
    if (std::exchange(owner.has_news, false)) owner.channel.send(frame(Kind::line, "\n"));
    owner.channel.flush();
  }
}

// --- the system ---

void Custodian::signal(pid_t process, int signal) { ::kill(process, signal); }
void Custodian::signal_group(pid_t leader, int signal) { ::kill(-leader, signal); }
std::vector<pid_t> Custodian::children() { return exec::children(); }
Membership Custodian::membership(pid_t process, const std::string& mark) {
  return membership_of(process, mark);
}

}  // namespace kolo::exec

// What the worker does next is decided by Member, from the launcher's messages and from signals
// that mean notice. This file brings these to it and sends its answers. A launcher that is gone is
// notice, too: the worker ends with its step. Waits are cut into slices, because an interpreter in
// this process may have been interrupted.
#include "comm/elastic/membership.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/env.h"
#include "base/errors.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/process_owned.h"
#include "base/signals_blocked.h"
#include "comm/rendezvous/caller.h"
#include "comm/rendezvous/client.h"

namespace kolo::comm::elastic {
namespace {

using namespace std::chrono_literals;

/// The launcher ends a wait by itself; this much later it is taken to be stuck.
constexpr auto kLauncherGrace = 60s;
constexpr auto kSendTime = 5s;
constexpr std::chrono::milliseconds kElasticTimeout = 600s;
/// To see whether the launcher is there when a connection to it has ended.
constexpr auto kProbeTime = 2s;
/// Before it comes again to a launcher that has dropped it.
constexpr std::chrono::milliseconds kLeastPause = 20ms, kMostPause = 1s;
/// A wait looks around this often for an interpreter whose user presses Ctrl-C.
constexpr int kSliceMs = 50;
/// Groups in a row whose ranks do not meet: the network or a program is wrong, and the next group
/// would fare no better.
constexpr int kFailedMeetings = 3;

constexpr std::string_view kLauncher = "the launcher (kolo run)";

ProcessOwned<Membership>& membership_of_process() {
  static ProcessOwned<Membership> membership;
  return membership;
}

std::vector<int> notice_signals() {
  std::vector<int> signals = {SIGTERM};
  if (const auto number = setting_integer("NOTICE_SIGNAL"); number && *number > 0)
    signals.push_back(static_cast<int>(*number));
  return signals;
}

}  // namespace

Membership* Membership::of_this_process() {
  if (membership_of_process()) return membership_of_process().get();
  const Launched launched = read_launcher(environment);
  if (launched.worker < 0) return nullptr;
  return &of_this_process(launched, Deadline::after(30s));
}

Membership& Membership::of_this_process(const Launched& launched, Deadline deadline) {
  auto& membership = membership_of_process();
  if (!membership) membership.emplace(launched, deadline);
  return *membership;
}

Membership::Membership(const Launched& launched, Deadline deadline)
    : worker_(launched.worker),
      door_(SocketAddress::parse(launched.rendezvous)),
      secret_(read_secret_file(launched.secret_fd, launched.custodian_pid)),
      patience_(setting_seconds("ELASTIC_TIMEOUT").value_or(kElasticTimeout) + kLauncherGrace) {
  socket_ = connect(deadline);
  const SignalsBlocked blocked;  // they are for the program's own threads
  pulse_ = std::thread([this] { tell_that_it_is_alive(); });
}

/// Whoever is late in a crowd of strangers is dropped at the door, and comes again.
Fd Membership::connect(Deadline deadline) const {
  for (auto pause = kLeastPause;; pause = std::min(2 * pause, kMostPause)) {
    try {
      rendezvous::Caller caller(door_, rendezvous::Purpose::membership, worker_, deadline,
                                std::string(kLauncher));
      return caller.prove(secret_, deadline);
    } catch (const Error& error) {
      if (!rendezvous::Caller::was_dropped(error)) throw;
      if (deadline.left() < pause)
        throw_error(ErrorCode::unavailable,
                    "{} does not let this process in as worker {}; if it was started by a rank of "
                    "the job, which is that worker, start it without KOLO_WORKER in its "
                    "environment",
                    kLauncher, worker_);
    }
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

Membership::~Membership() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  pulse_.join();
}

/// A process that is stopped, or whose machine is, tells nothing; one that takes long for its step
/// does.
void Membership::tell_that_it_is_alive() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    changed_.wait_for(lock, kPulse);
    if (is_stopping_ || !socket_.valid()) continue;
    try {
      send_all(socket_.get(), encode(FromWorker(Alive{})), Deadline::after(kSendTime), kLauncher);
    } catch (const Error&) {
      ::shutdown(socket_.get(), SHUT_RDWR);  // the worker's own thread sees that it is gone
    }
  }
}

void Membership::heed_notice() {
  if (!notice_) notice_ = std::make_unique<Notice>(notice_signals());
}

void Membership::send(const FromWorker& message) {
  MutexLock lock(mutex_);
  if (!socket_.valid()) return;
  try {
    send_all(socket_.get(), encode(message), Deadline::after(kSendTime), kLauncher);
  } catch (const Error&) {
    ::shutdown(socket_.get(), SHUT_RDWR);  // receive() sees that it is gone
  }
}

/// A worker that leaves without a word, with status 0, would have finished the work for a launcher
/// that is there.
void Membership::lose_launcher() {
  bool is_there = false;
  try {
    const Fd probe = connect_tcp(door_, Deadline::after(kProbeTime));
    // A port of this host at which nobody listens may be given to the one who asks for it.
    is_there = local_address_of(probe.get()).str() != door_.str();
  } catch (const Error&) {
    is_there = false;
  }
  if (is_there)
    throw_error(ErrorCode::unavailable,
                "worker {}: the connection to {} was broken, but it still listens at {}; this "
                "process fails, and the others go on without it",
                worker_, kLauncher, door_.str());
  log::warning("kolo run is gone; this worker ends with the step");
  member_.notice();
}

void Membership::receive() {
  if (notice_ && notice_->given()) member_.notice();
  char chunk[4096];
  while (socket_.valid()) {
    const ssize_t got = ::recv(socket_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got > 0) {
      parser_.feed({chunk, static_cast<std::size_t>(got)});
      continue;
    }
    {
      MutexLock lock(mutex_);
      socket_.reset();
    }
    lose_launcher();
  }
  while (auto frame = parser_.next()) {
    const FromLauncher message = decode_from_launcher(*frame);
    if (std::holds_alternative<Wait>(message)) told_to_wait_ = Deadline::Clock::now();
    member_.take(message);
  }
}

void Membership::tell_timeout(std::chrono::milliseconds of_operations) {
  send(Timeout{of_operations});
}

Wish Membership::wish() {
  receive();
  return member_.wish();
}

void Membership::leave_group(int blamed) {
  if (!std::exchange(in_group_, false)) return;
  receive();
  send(member_.leave_group(blamed));
}

Next Membership::await_next() {
  const auto begin = Deadline::Clock::now();
  // Others stop for a new worker from then on.
  if (!std::exchange(has_reported_, true)) send(member_.leave_group(-1));
  while (true) {
    receive();
    if (const Next next = member_.next(); next != Next::wait) {
      if (next == Next::leave) send(Leaving{});
      return next;
    }
    if (Deadline::at(std::max(begin, told_to_wait_) + patience_).passed())
      throw_error(ErrorCode::timeout, "worker {}: {} has formed no group within {} s", worker_,
                  kLauncher, std::chrono::duration_cast<std::chrono::seconds>(patience_).count());
    throw_if_interrupted();
    pollfd polls[] = {{socket_.get(), POLLIN, 0}, {notice_ ? notice_->fd() : -1, POLLIN, 0}};
    ::poll(polls, 2, kSliceMs);
  }
}

std::shared_ptr<Bootstrap> Membership::join(std::chrono::milliseconds patience) {
  // Whoever started this process counts on it to let the group change.
  if (!notice_ && setting_integer("ELASTIC_ONLY").value_or(0) != 0)
    throw_error(ErrorCode::failed_precondition,
                "the number of ranks may change while this program runs, but it calls kolo::init() "
                "itself; call kolo::elastic::run() instead, use a Trainer with the option elastic, "
                "or start it with a fixed number of ranks");
  leave_group(-1);
  if (await_next() != Next::join)
    throw_error(ErrorCode::cancelled, "worker {} was asked to leave before it had a group",
                worker_);
  const GroupPlan plan = member_.join();
  in_group_ = true;
  has_met_ = false;
  if (plan.host_of_rank.size() == 1) return make_lone_bootstrap();
  return std::make_shared<rendezvous::Client>(
      rendezvous::ClientOptions{door_.with_port(plan.port), secret_of(secret_, plan.generation),
                                Topology(plan.rank, plan.host_of_rank), "kolo run (elastic)", -1,
                                nullptr},
      Deadline::after(patience));
}

void Membership::met() noexcept {
  has_met_ = true;
  failed_meetings_ = 0;
}

bool Membership::ends_group(const Error& error) noexcept {
  if (error.code() == ErrorCode::peer_lost) return true;
  const bool has_not_come =
      error.code() == ErrorCode::timeout || error.code() == ErrorCode::unavailable;
  if (!has_not_come || !in_group_) return false;
  if (has_met_) return error.code() == ErrorCode::timeout && error.rank().has_value();
  return ++failed_meetings_ < kFailedMeetings;
}

void Membership::finished() {
  in_group_ = false;
  send(Finished{member_.generation()});
}

}  // namespace kolo::comm::elastic

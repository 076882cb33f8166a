// One thread polls signals, the links to the hosts, and its own output. Ranks start when all hosts
// have answered, and the job is over when all hosts are finished. Of a host, `alive` are ranks
// whose program runs, and `unwaited` those of which some process may be left. The first failure
// gives the status and has all ranks end; those that follow are its consequences.
#include "launch/supervisor.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/secret.h"
#include "base/signal_echo.h"
#include "base/subprocess.h"
#include "comm/rendezvous/server.h"
#include "exec/link.h"
#include "launch/meeting_place.h"
#include "launch/run_board.h"
#include "launch/stop_signals.h"

namespace kolo::launch {
namespace {

using namespace std::chrono_literals;

/// The hosts' output is not read while this much waits for whoever reads ours.
constexpr std::size_t kPendingLimit = 8U << 20;
/// After this long past the grace time, a host that has not confirmed the end is given up.
constexpr auto kConfirmationTime = 10s;

class Supervisor {
 public:
  explicit Supervisor(const ParallelJob& job);
  int run();

 private:
  enum class HostState { connecting, ready, running, finished };
  struct HostEntry {
    const Placement* placement = nullptr;
    std::unique_ptr<exec::Link> link;
    HostState state = HostState::connecting;
    exec::Hello hello;
    std::set<int> alive;     // ranks whose program runs
    std::set<int> unwaited;  // ranks of which something may be left
  };

  void open_links();
  void start_if_all_ready();
  void show_ranks();
  void start_host(HostEntry& host, const std::string& rendezvous);
  void poll_once();
  [[nodiscard]] int poll_timeout_ms() const;
  void read_signals();
  void read_from(HostEntry& host);
  void handle(HostEntry& host, exec::Event& event);
  void rank_exited(HostEntry& host, int rank, int status);
  void rank_ended(HostEntry& host, const exec::TaskEnd& end);
  void host_closed(HostEntry& host);
  void check_deadlines();

  void fail(int status, const std::string& line);
  void stop(bool at_once);
  [[nodiscard]] int ranks_alive() const;
  void say(const std::string& line);
  template <class... Args>
  void detail(fmt::format_string<Args...> format, Args&&... args) {
    if (job_.verbose) say(fmt::format(format, std::forward<Args>(args)...));
  }

  const ParallelJob& job_;
  int size_ = 0;
  LineSink sink_;
  RankOutputs outputs_;
  Fd signals_;
  SignalEcho last_signal_;
  Secret secret_ = Secret::random();
  RunBoard board_;
  std::vector<HostEntry> hosts_;
  std::unique_ptr<comm::rendezvous::Server> server_;
  bool started_ = false, stopping_ = false;
  std::optional<int> status_;  // of the first failure
  Deadline start_deadline_;
  std::optional<Deadline> give_up_;
};

int total_ranks(const ParallelJob& job) {
  int ranks = 0;
  for (const auto& placement : job.placements) ranks += placement.ranks;
  return ranks;
}

Supervisor::Supervisor(const ParallelJob& job)
    : job_(job),
      size_(total_ranks(job)),
      outputs_(job.output, size_, sink_),
      signals_(stop_signals()),
      board_(job.argv, job.directory, /*is_elastic=*/false),
      start_deadline_(Deadline::after(job.start_timeout)) {}

int Supervisor::run() {
  open_links();
  start_if_all_ready();
  while (!std::all_of(hosts_.begin(), hosts_.end(),
                      [](const HostEntry& host) { return host.state == HostState::finished; }))
    poll_once();
  outputs_.finish();
  sink_.write_to_the_end();
  return status_.value_or(0);
}

void Supervisor::open_links() {
  hosts_.resize(job_.placements.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    HostEntry& host = hosts_[i];
    const Placement& placement = job_.placements[i];
    host.placement = &placement;
    if (job_.open_link) {
      OpenedLink opened = job_.open_link(placement);
      host.link = std::move(opened.link);
      host.hello = std::move(opened.hello);
      host.state = HostState::ready;
    } else if (placement.is_local) {
      host.link = exec::Link::to_this_machine();
      host.state = HostState::ready;  // no answer is needed to know that it works
    } else {
      const auto command = exec::ssh_command(job_.ssh, placement.host);
      detail("connecting: {}", fmt::join(command, " "));
      host.link = exec::Link::through(command, placement.host);
    }
    for (int rank = 0; rank < placement.ranks; ++rank) {
      host.alive.insert(placement.first_rank + rank);
      host.unwaited.insert(placement.first_rank + rank);
    }
  }
}

void Supervisor::start_if_all_ready() {
  if (started_ || stopping_ ||
      !std::all_of(hosts_.begin(), hosts_.end(),
                   [](const HostEntry& host) { return host.state == HostState::ready; }))
    return;
  started_ = true;
  std::vector<HostRoute> routes;
  for (const auto& host : hosts_)
    routes.push_back({host.placement->host, !host.placement->is_local, host.hello.from});
  MeetingPlace meeting;
  try {
    meeting = open_meeting_place(size_, secret_, routes, job_.network_interface, &board_);
  } catch (const Error& error) {
    fail(1, error.message());
    return;
  }
  server_ = std::move(meeting.server);
  show_ranks();
  const auto& rendezvous = meeting.of_host;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    detail("starting {} ranks on {}{}", hosts_[i].alive.size(), hosts_[i].placement->host,
           rendezvous[i].empty() ? "" : ", meeting at " + rendezvous[i]);
    start_host(hosts_[i], rendezvous[i]);
  }
}

void Supervisor::show_ranks() {
  std::vector<RankPlace> places;
  for (const auto& placement : job_.placements)
    for (int local = 0; local < placement.ranks; ++local)
      places.push_back(
          {placement.first_rank + local, placement.first_rank + local, placement.host});
  board_.set_ranks(places);
}

void Supervisor::start_host(HostEntry& host, const std::string& rendezvous) {
  const Placement& placement = *host.placement;
  Environment environment;
  if (!placement.is_local) environment = exec::forwardable(current_environment());
  host.link->set_environment(merge_environment(std::move(environment), job_.environment));
  for (int local = 0; local < placement.ranks; ++local) {
    exec::Task task;
    const int rank = placement.first_rank + local;
    task.id = static_cast<exec::TaskId>(rank);
    task.argv = job_.argv;
    task.environment = rank_variables(job_.placements, placement, local, rendezvous);
    task.directory = job_.directory;
    task.streams.to_owner = true;
    if (placement.is_local) task.descriptors = job_.descriptors;
    task.secret = secret_.bytes();
    task.share = {local, placement.ranks, job_.bind_to};
    task.grace = {job_.grace, job_.grace, job_.grace};
    task.tell_exit = true;
    host.link->start(task);
  }
  host.link->finish();
  host.state = HostState::running;
}

void Supervisor::poll_once() {
  const bool may_read = sink_.pending_bytes() < kPendingLimit;
  std::vector<pollfd> polls = {{signals_.get(), POLLIN, 0}, {sink_.waiting_for(), POLLOUT, 0}};
  for (const auto& host : hosts_) {
    const bool open = host.state != HostState::finished;
    polls.push_back({open && may_read ? host.link->read_fd() : -1, POLLIN, 0});
    polls.push_back({open ? host.link->write_fd() : -1, POLLOUT, 0});
    polls.push_back({open ? host.link->error_fd() : -1, POLLIN, 0});
  }
  if (::poll(polls.data(), polls.size(), poll_timeout_ms()) < 0) return;
  if (polls[0].revents != 0) read_signals();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const pollfd* events = &polls[2 + 3 * i];
    if (events[2].revents != 0) hosts_[i].link->read_errors();
    if (events[1].revents != 0) hosts_[i].link->flush();
    if (events[0].revents != 0) read_from(hosts_[i]);
  }
  start_if_all_ready();
  sink_.write_some();
  check_deadlines();
}

int Supervisor::poll_timeout_ms() const {
  if (give_up_) return give_up_->poll_timeout_ms();
  return started_ || stopping_ ? -1 : start_deadline_.poll_timeout_ms();
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (last_signal_.is_echo()) continue;
    if (!stopping_) {
      fail(128 + signal, fmt::format("{}; stopping all ranks{}", ::strsignal(signal),
                                     signal == SIGINT ? " (again to kill them at once)" : ""));
    } else {
      stop(/*at_once=*/true);
    }
  }
}

void Supervisor::read_from(HostEntry& host) {
  try {
    for (auto& event : host.link->receive()) handle(host, event);
  } catch (const Error& error) {
    fail(1, fmt::format("{}: {}", host.placement->host, error.message()));
    host.link->kill_command();
  }
  if (host.link->closed() && host.state != HostState::finished) host_closed(host);
}

void Supervisor::handle(HostEntry& host, exec::Event& event) {
  if (auto* hello = std::get_if<exec::Hello>(&event)) {
    host.hello = std::move(*hello);
    if (host.state == HostState::connecting) host.state = HostState::ready;
  } else if (const auto* output = std::get_if<exec::Output>(&event)) {
    outputs_.feed(*output);
  } else if (const auto* exited = std::get_if<exec::Exited>(&event)) {
    rank_exited(host, static_cast<int>(exited->id), exited->status);
  } else if (const auto* end = std::get_if<exec::TaskEnd>(&event)) {
    rank_ended(host, *end);
  }
}

void Supervisor::rank_exited(HostEntry& host, int rank, int status) {
  if (host.alive.erase(rank) == 0) return;
  const std::string how = describe_wait_status(status);
  board_.ended(rank, how);
  if (server_) server_->announce(comm::departure_by_status(rank, status));
  detail("rank {} on {} {}", rank, host.placement->host, how);
  const int code = exit_code_of(status);
  if (code == 0 || stopping_) return;
  const int others = ranks_alive();
  fail(code, fmt::format("rank {} on {} {}{}", rank, host.placement->host, how,
                         others > 0 ? "; stopping the other ranks" : ""));
}

/// Nothing of the rank is left; a rank that never was is told by its error.
void Supervisor::rank_ended(HostEntry& host, const exec::TaskEnd& end) {
  const int rank = static_cast<int>(end.id);
  host.unwaited.erase(rank);
  if (host.alive.erase(rank) != 0)  // it could not be started
    fail(1, host.placement->is_local ? end.error
                                     : fmt::format("{}: {}", host.placement->host, end.error));
  else if (!end.error.empty())
    say(fmt::format("rank {} on {} has ended, but {}", rank, host.placement->host, end.error));
  if (host.unwaited.empty()) host.state = HostState::finished;
}

void Supervisor::host_closed(HostEntry& host) {
  host.state = HostState::finished;
  const std::string name = host.placement->host;
  const std::string reason = host.link->reason_of_end();
  if (!started_) {
    fail(1, fmt::format("cannot start on {}: {}", name, reason));
    return;
  }
  for (const int rank : host.alive)
    if (server_)
      server_->announce({rank, fmt::format("its host {} was lost: {}", name, reason),
                         comm::DepartureKind::failed});
  const bool lost_ranks = !host.alive.empty();
  host.alive.clear();
  if (lost_ranks)
    fail(1, fmt::format("host {} was lost: {}{}", name, reason,
                        ranks_alive() > 0 ? "; stopping the other ranks" : ""));
}

void Supervisor::check_deadlines() {
  if (!started_ && !stopping_ && start_deadline_.passed()) {
    std::string silent;
    for (const auto& host : hosts_)
      if (host.state == HostState::connecting)
        silent += (silent.empty() ? "" : ", ") + host.placement->host;
    fail(1, fmt::format("no answer from {} within {} s; --start-timeout gives more time", silent,
                        std::chrono::duration<double>(job_.start_timeout).count()));
  }
  if (give_up_ && give_up_->passed()) {
    give_up_.reset();
    for (auto& host : hosts_) {
      if (host.state == HostState::finished) continue;
      say(fmt::format("{} did not confirm that its ranks have ended", host.placement->host));
      host.link->kill_command();
      host.state = HostState::finished;
    }
  }
}

void Supervisor::fail(int status, const std::string& line) {
  if (status_) return;  // the first one is the reason, the rest are consequences
  status_ = status;
  say(line);
  stop(/*at_once=*/false);
}

void Supervisor::stop(bool at_once) {
  stopping_ = true;
  for (auto& host : hosts_) {
    if (host.state == HostState::finished) continue;
    if (host.state == HostState::connecting) {
      // There may be nobody to hear a request; without its pipes a custodian ends by itself.
      host.link->kill_command();
      host.state = HostState::finished;
      continue;
    }
    if (host.state == HostState::ready) {
      host.state = HostState::finished;  // nothing was started there
      continue;
    }
    for (const int rank : host.unwaited) {
      const auto task = static_cast<exec::TaskId>(rank);
      at_once ? host.link->kill(task) : host.link->end(task);
    }
  }
  give_up_ = Deadline::after(at_once ? std::chrono::milliseconds(kConfirmationTime)
                                     : job_.grace + kConfirmationTime);
}

int Supervisor::ranks_alive() const {
  std::size_t alive = 0;
  for (const auto& host : hosts_) alive += host.alive.size();
  return static_cast<int>(alive);
}

void Supervisor::say(const std::string& line) {
  board_.note(line);
  sink_.add(STDERR_FILENO, fmt::format("kolo run: {}\n", line));
}

}  // namespace

int run_job(const ParallelJob& job) { return Supervisor(job).run(); }

}  // namespace kolo::launch

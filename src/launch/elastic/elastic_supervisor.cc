// One loop over everything that can happen: messages of workers, ends of processes (Links to the
// custodians), the discovery script, signals, time. Each is told to the GroupLeader, and what it
// orders is carried out here.
#include "launch/elastic/elastic_supervisor.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/errors.h"
#include "base/plural.h"
#include "base/signal_echo.h"
#include "base/subprocess.h"
#include "launch/elastic/discovery.h"
#include "launch/elastic/group_leader.h"
#include "launch/elastic/worker_hosts.h"
#include "launch/output.h"
#include "launch/run_board.h"
#include "launch/stop_signals.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;

/// The hosts' output is not read while this much waits for whoever reads ours.
constexpr std::size_t kPendingLimit = 8U << 20;

/// Workers on other hosts may come, or may come later: then any address of this machine, or the one
/// that was named.
SocketAddress place_to_listen(const ElasticJob& job) {
  const bool all_local = job.discovery_script.empty() &&
                         std::all_of(job.hosts.begin(), job.hosts.end(),
                                     [](const Host& host) { return is_this_machine(host.name); });
  if (all_local) return SocketAddress::loopback();
  const std::string& interface = job.job.network_interface;
  return interface.empty() ? SocketAddress::from_numeric("0.0.0.0") : interface_address(interface);
}

RosterOptions roster_options(const ElasticJob& job) {
  RosterOptions options;
  options.start_ranks = job.start_ranks;
  options.least_ranks = job.least_ranks;
  options.most_ranks = job.most_ranks;
  options.reset_limit = job.reset_limit;
  options.start_timeout = job.job.start_timeout;
  options.elastic_timeout = job.elastic_timeout;
  options.hosts_may_come = !job.discovery_script.empty();
  return options;
}

class ElasticSupervisor {
 public:
  explicit ElasticSupervisor(const ElasticJob& elastic);
  int run();

 private:
  HostEvents host_events();
  LeaderOrders orders();
  void poll_once();
  [[nodiscard]] int poll_timeout_ms() const;
  void read_signals();
  void discover();

  void ended(int worker, int code, const std::string& how);
  void start(int worker, const HostPool::Slot& slot);
  void tell_group(Generation generation, const std::vector<int>& members);
  void end(int status, const std::string& reason);
  void say(const std::string& line) {
    board_.note(line);
    sink_.add(STDERR_FILENO, fmt::format("kolo run: {}\n", line));
  }

  const ElasticJob& elastic_;
  const ParallelJob& job_;
  LineSink sink_;
  RankOutputs outputs_;
  Fd signals_;
  SignalEcho last_signal_;
  RunBoard board_;
  GroupLeader leader_;
  WorkerHosts hosts_;
  std::unique_ptr<Discovery> discovery_;
  bool is_stopping_ = false;
  int status_ = 0;
};

ElasticSupervisor::ElasticSupervisor(const ElasticJob& elastic)
    : elastic_(elastic),
      job_(elastic.job),
      outputs_(job_.output, 0, sink_),
      signals_(stop_signals()),
      board_(job_.argv, job_.directory, /*is_elastic=*/true),
      leader_(roster_options(elastic), HostPool(elastic.cooldown, random_draw()),
              place_to_listen(elastic), orders()),
      hosts_(job_, leader_.secret(), leader_.door(), host_events()) {
  if (elastic.discovery_script.empty()) return;
  DiscoveryOptions options;
  options.script = elastic.discovery_script;
  options.slots_per_host = elastic.slots_per_host;
  discovery_ = std::make_unique<Discovery>(std::move(options),
                                           [this](const std::string& text) { say(text); });
}

HostEvents ElasticSupervisor::host_events() {
  HostEvents events;
  events.output = [this](const exec::Output& output) { outputs_.feed(output); };
  events.exited = [this](int worker, int status) {
    ended(worker, exit_code_of(status), describe_wait_status(status));
  };
  events.lost = [this](int worker, const std::string& how) { ended(worker, 1, how); };
  events.refused = [this](int worker) { leader_.refused(worker); };
  events.say = [this](const std::string& line) { say(line); };
  return events;
}

LeaderOrders ElasticSupervisor::orders() {
  LeaderOrders orders;
  orders.start = [this](int worker, const HostPool::Slot& slot) { start(worker, slot); };
  orders.kill = [this](int worker) { hosts_.kill(worker); };
  orders.end = [this](int status, const std::string& reason) { end(status, reason); };
  orders.say = [this](const std::string& line) { say(line); };
  orders.formed = [this](Generation generation, const std::vector<int>& members) {
    tell_group(generation, members);
  };
  orders.heard = [this](int rank, const comm::ActivityReport& report) {
    board_.heard(rank, report);
  };
  return orders;
}

int ElasticSupervisor::run() {
  if (!discovery_) leader_.hosts_changed(elastic_.hosts);
  while (!is_stopping_ || hosts_.anything_left()) poll_once();
  outputs_.finish();
  sink_.write_to_the_end();
  return status_;
}

// --- what can happen -----------------------------------------------------------------------------

void ElasticSupervisor::poll_once() {
  std::vector<pollfd> polls = {{signals_.get(), POLLIN, 0},
                               {sink_.waiting_for(), POLLOUT, 0},
                               {leader_.poll_fd(), POLLIN, 0},
                               {discovery_ ? discovery_->fd() : -1, POLLIN, 0}};
  const std::size_t first = polls.size();
  hosts_.add_polls(polls, /*may_read=*/sink_.pending_bytes() < kPendingLimit);
  if (::poll(polls.data(), polls.size(), poll_timeout_ms()) < 0) return;
  if (polls[0].revents != 0) read_signals();
  hosts_.work(polls.data() + first);
  if (polls[2].revents != 0) leader_.hear();
  if (discovery_ && !is_stopping_) discover();
  sink_.write_some();
  leader_.keep_time();
}

int ElasticSupervisor::poll_timeout_ms() const {
  std::optional<Deadline> next = hosts_.next();
  const auto consider = [&](Deadline other) {
    if (!next || other.when() < next->when()) next = other;
  };
  if (const auto due = leader_.next()) consider(*due);
  if (discovery_ && !is_stopping_) consider(discovery_->next());
  return next ? next->poll_timeout_ms() : -1;
}

void ElasticSupervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (last_signal_.is_echo()) continue;
    if (is_stopping_) {
      hosts_.end_all(/*at_once=*/true);
    } else {
      leader_.stop();
      end(128 + signal, ::strsignal(signal));
    }
  }
}

void ElasticSupervisor::ended(int worker, int code, const std::string& how) {
  board_.ended(worker, how);
  leader_.ended(worker, code, how);
}

void ElasticSupervisor::discover() {
  if (auto hosts = discovery_->work()) leader_.hosts_changed(std::move(*hosts));
  if (const std::string& failure = discovery_->first_failure();
      !failure.empty() && leader_.living() == 0 && !is_stopping_) {
    leader_.stop();
    end(1, failure);
  }
}

// --- what the leader orders ----------------------------------------------------------------------

void ElasticSupervisor::start(int worker, const HostPool::Slot& slot) {
  if (is_stopping_) return;
  outputs_.add(worker);
  hosts_.start(worker, slot);
}

void ElasticSupervisor::tell_group(Generation generation, const std::vector<int>& members) {
  if (generation > 1 || job_.verbose)
    say(fmt::format("generation {}: {} (workers {})", generation,
                    counted(static_cast<int>(members.size()), "rank"), fmt::join(members, ", ")));
  std::vector<RankPlace> places;
  for (const int worker : members)
    places.push_back({static_cast<int>(places.size()), worker, leader_.slot_of(worker).host});
  board_.set_ranks(places, static_cast<int>(generation));
}

void ElasticSupervisor::end(int status, const std::string& reason) {
  if (std::exchange(is_stopping_, true)) return;
  status_ = status;
  if (!reason.empty())
    say(fmt::format("{}{}", reason, hosts_.anything_left() ? "; stopping all ranks" : ""));
  hosts_.end_all(/*at_once=*/false);
}

}  // namespace

int run_elastic_job(const ElasticJob& job) { return ElasticSupervisor(job).run(); }

}  // namespace kolo::launch::elastic

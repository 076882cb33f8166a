// One loop over everything that can happen: messages of workers (Lobby), ends of processes (Links
// to the custodians), the discovery script, signals, time. Each is told to the Roster, and what the
// Roster decides is carried out here.
#include "launch/elastic/elastic_supervisor.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "base/errors.h"
#include "base/plural.h"
#include "base/secret.h"
#include "base/subprocess.h"
#include "comm/elastic/lobby.h"
#include "comm/rendezvous/server.h"
#include "kolo/random.h"
#include "launch/elastic/discovery.h"
#include "launch/elastic/roster.h"
#include "launch/elastic/worker_hosts.h"
#include "launch/output.h"
#include "launch/run_board.h"
#include "launch/stop_signals.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;
using comm::elastic::Lobby;

/// The hosts' output is not read while this much waits for whoever reads ours.
constexpr std::size_t kPendingLimit = 8U << 20;

Time now() { return Deadline::Clock::now().time_since_epoch(); }

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

/// Launchers that lost the same host at the same moment are not to come back at the same moment.
std::function<double()> random_draw() {
  std::uint64_t seed = 0;
  std::memcpy(&seed, Secret::random().bytes().data(), sizeof seed);
  return [random = Random(seed)]() mutable { return random.uniform(); };
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
  void poll_once();
  [[nodiscard]] int poll_timeout_ms() const;
  void read_signals();
  void read_lobby();
  void ended(int worker, int code, const std::string& how);
  void discover();

  void carry_out(const Actions& actions);
  void carry_out(const StartWorker& action);
  void carry_out(const KillWorker& action) { hosts_.kill(action.worker); }
  void carry_out(const RetireWorker& action) {
    lobby_.send(action.worker, comm::elastic::Retire{});
  }
  void carry_out(const FormGroup& action);
  void carry_out(const RequestChange& action);
  void carry_out(const TellOver& action) {
    lobby_.send(action.worker, comm::elastic::Over{action.generation});
  }
  void carry_out(const AnnounceLoss& action) {
    using comm::DepartureKind;
    const auto kind = action.has_failed ? DepartureKind::failed : DepartureKind::finished;
    if (server_) server_->announce({action.rank, action.reason, kind});
  }
  void carry_out(const EndJob& action);
  void carry_out(const Say& action) { say(action.text); }

  void say(const std::string& line) {
    board_.note(line);
    sink_.add(STDERR_FILENO, fmt::format("kolo run: {}\n", line));
  }

  const ElasticJob& elastic_;
  const Job& job_;
  LineSink sink_;
  RankOutputs outputs_;
  Fd signals_;
  Secret secret_ = Secret::random();
  RunBoard board_;
  Roster roster_;
  Lobby lobby_;
  WorkerHosts hosts_;
  std::unique_ptr<Discovery> discovery_;
  std::unique_ptr<comm::rendezvous::Server> server_;  // of the group at work
  std::vector<int> members_;
  bool is_stopping_ = false;
  int status_ = 0;
};

ElasticSupervisor::ElasticSupervisor(const ElasticJob& elastic)
    : elastic_(elastic),
      job_(elastic.job),
      outputs_(job_.output, 0, sink_),
      signals_(stop_signals()),
      board_(job_.argv, job_.directory, /*is_elastic=*/true),
      roster_(roster_options(elastic), HostPool(elastic.cooldown, random_draw())),
      lobby_(secret_, {place_to_listen(elastic)},
             [this](int worker) { return roster_.expects(worker); }),
      hosts_(job_, secret_, lobby_.addresses().front(), host_events()) {
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
    // What it said before its end comes first: whether it was done, left on notice or failed.
    read_lobby();
    ended(worker, exit_code_of(status), describe_wait_status(status));
  };
  events.lost = [this](int worker, const std::string& how) { ended(worker, 1, how); };
  events.say = [this](const std::string& line) { say(line); };
  return events;
}

int ElasticSupervisor::run() {
  if (!discovery_) carry_out(roster_.hosts_changed(elastic_.hosts, now()));
  while (!is_stopping_ || hosts_.anything_left()) poll_once();
  outputs_.finish();
  sink_.write_to_the_end();
  return status_;
}

// --- what can happen -----------------------------------------------------------------------------

void ElasticSupervisor::poll_once() {
  std::vector<pollfd> polls = {{signals_.get(), POLLIN, 0},
                               {sink_.waiting_for(), POLLOUT, 0},
                               {lobby_.poll_fd(), POLLIN, 0},
                               {discovery_ ? discovery_->fd() : -1, POLLIN, 0}};
  const std::size_t first = polls.size();
  hosts_.add_polls(polls, /*may_read=*/sink_.pending_bytes() < kPendingLimit);
  if (::poll(polls.data(), polls.size(), poll_timeout_ms()) < 0) return;
  if (polls[0].revents != 0) read_signals();
  hosts_.work(polls.data() + first);
  if (polls[2].revents != 0) read_lobby();
  if (discovery_ && !is_stopping_) discover();
  sink_.write_some();
  if (const auto tick = roster_.next_tick(); tick && *tick <= now()) carry_out(roster_.tick(now()));
}

int ElasticSupervisor::poll_timeout_ms() const {
  std::optional<Deadline> next = hosts_.next();
  const auto consider = [&](Deadline other) {
    if (!next || other.when() < next->when()) next = other;
  };
  if (const auto tick = roster_.next_tick())
    consider(Deadline::at(Deadline::Clock::time_point(*tick)));
  if (discovery_ && !is_stopping_) consider(discovery_->next());
  return next ? next->poll_timeout_ms() : -1;
}

void ElasticSupervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (is_stopping_) {
      hosts_.end_all(/*at_once=*/true);
    } else {
      roster_.stop();
      carry_out(EndJob{128 + signal, ::strsignal(signal)});
    }
  }
}

void ElasticSupervisor::read_lobby() {
  for (const auto& [worker, message] : lobby_.receive()) {
    if (const auto* ready = std::get_if<comm::elastic::Ready>(&message))
      carry_out(roster_.ready(worker, *ready, now()));
    else if (const auto* finished = std::get_if<comm::elastic::Finished>(&message))
      carry_out(roster_.finished(worker, *finished, now()));
    else
      carry_out(roster_.leaving(worker, now()));
  }
}

void ElasticSupervisor::ended(int worker, int code, const std::string& how) {
  lobby_.forget(worker);
  board_.ended(worker, how);
  carry_out(roster_.ended(worker, code, how, now()));
}

void ElasticSupervisor::discover() {
  if (auto hosts = discovery_->work()) carry_out(roster_.hosts_changed(std::move(*hosts), now()));
  if (const std::string& failure = discovery_->first_failure();
      !failure.empty() && roster_.living() == 0 && !is_stopping_) {
    roster_.stop();
    carry_out(EndJob{1, failure});
  }
}

// --- what the roster decides ---------------------------------------------------------------------

void ElasticSupervisor::carry_out(const Actions& actions) {
  for (const Action& action : actions)
    std::visit([this](const auto& one) { carry_out(one); }, action);
}

void ElasticSupervisor::carry_out(const StartWorker& action) {
  if (is_stopping_) return;
  outputs_.add(action.worker);
  hosts_.start(action.worker, action.slot);
}

void ElasticSupervisor::carry_out(const FormGroup& action) {
  members_ = action.members;
  server_.reset();  // with it goes whatever still speaks of the last group
  std::uint16_t port = 0;
  const int size = static_cast<int>(members_.size());
  if (size > 1) {
    comm::rendezvous::ServerOptions options;
    options.size = size;
    options.secret = comm::elastic::secret_of(secret_, action.generation);
    options.listen = {lobby_.addresses().front().with_port(0)};
    options.on_activity = [this](int rank, const comm::ActivityReport& report) {
      board_.heard(rank, report);
    };
    server_ = std::make_unique<comm::rendezvous::Server>(std::move(options));
    port = server_->addresses().front().port();
  }
  const std::string text = fmt::format("generation {}: {} (workers {})", action.generation,
                                       counted(size, "rank"), fmt::join(members_, ", "));
  if (action.generation > 1 || job_.verbose) say(text);
  std::vector<RankPlace> places;
  for (const int worker : members_)
    places.push_back({static_cast<int>(places.size()), worker, roster_.slot_of(worker).host});
  board_.set_ranks(places, static_cast<int>(action.generation));

  std::map<std::string, int> number_of_host;
  comm::elastic::GroupPlan plan;
  plan.generation = action.generation;
  plan.port = port;
  for (const int worker : members_)
    plan.host_of_rank.push_back(
        number_of_host
            .try_emplace(roster_.slot_of(worker).host, static_cast<int>(number_of_host.size()))
            .first->second);
  for (plan.rank = 0; plan.rank < size; ++plan.rank)
    lobby_.send(members_[static_cast<std::size_t>(plan.rank)], plan);
}

void ElasticSupervisor::carry_out(const RequestChange& action) {
  for (const int worker : members_) lobby_.send(worker, comm::elastic::Change{action.generation});
}

void ElasticSupervisor::carry_out(const EndJob& action) {
  if (std::exchange(is_stopping_, true)) return;
  status_ = action.status;
  if (!action.reason.empty())
    say(fmt::format("{}{}", action.reason, hosts_.anything_left() ? "; stopping all ranks" : ""));
  hosts_.end_all(/*at_once=*/false);
}

}  // namespace

int run_elastic_job(const ElasticJob& job) { return ElasticSupervisor(job).run(); }

}  // namespace kolo::launch::elastic

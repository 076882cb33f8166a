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
#include <set>

#include "base/errors.h"
#include "base/plural.h"
#include "base/secret.h"
#include "base/subprocess.h"
#include "comm/elastic/lobby.h"
#include "comm/rendezvous/server.h"
#include "exec/link.h"
#include "kolo/random.h"
#include "launch/elastic/discovery.h"
#include "launch/elastic/roster.h"
#include "launch/meeting_place.h"
#include "launch/output.h"
#include "launch/stop_signals.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;
using comm::elastic::Lobby;

/// The hosts' output is not read while this much waits for whoever reads ours.
constexpr std::size_t kPendingLimit = 8U << 20;
/// After this long past the grace time, a host that has not confirmed the end is given up.
constexpr auto kConfirmationTime = 10s;

Time now() { return Deadline::Clock::now().time_since_epoch(); }

/// Workers on other hosts may come, or may come later: then any address of this machine.
std::vector<SocketAddress> places_to_listen(const ElasticJob& job) {
  const bool all_local = job.discovery_script.empty() &&
                         std::all_of(job.hosts.begin(), job.hosts.end(),
                                     [](const Host& host) { return is_this_machine(host.name); });
  return {all_local ? SocketAddress::loopback() : SocketAddress::from_numeric("0.0.0.0")};
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
  struct HostEntry {
    std::unique_ptr<exec::Link> link;
    bool is_local = false, is_ready = false;
    std::string rendezvous;  // where its workers find the lobby
    std::set<int> asked;     // workers to be started when it is ready
    std::set<int> alive;     // workers whose program runs
    std::set<int> unwaited;  // workers of which something may be left
    std::optional<Deadline> connect_by;
  };

  void poll_once();
  [[nodiscard]] int poll_timeout_ms() const;
  void read_signals();
  void read_lobby();
  void read_from(const std::string& name, HostEntry& host);
  void handle(const std::string& name, HostEntry& host, exec::Event& event);
  void lose_host(const std::string& name, const std::string& reason);
  void check_deadlines();
  void discover();

  void carry_out(const Actions& actions);
  void carry_out(const StartWorker& action);
  void carry_out(const KillWorker& action);
  void carry_out(const RetireWorker& action) {
    lobby_.send(action.worker, comm::elastic::Retire{});
  }
  void carry_out(const FormGroup& action);
  void carry_out(const RequestChange& action);
  void carry_out(const TellOver& action) {
    lobby_.send(action.worker, comm::elastic::Over{action.generation});
  }
  void carry_out(const AnnounceLoss& action) {
    if (server_) server_->announce({action.rank, action.reason});
  }
  void carry_out(const EndJob& action);
  void carry_out(const Say& action) { say(action.text); }

  void connect(const std::string& name, HostEntry& host);
  void begin(const std::string& name, HostEntry& host);
  void start(const std::string& name, HostEntry& host, int worker);
  void end_workers(bool at_once);
  [[nodiscard]] bool anything_left() const;
  void say(const std::string& line) {
    sink_.add(STDERR_FILENO, fmt::format("kolo run: {}\n", line));
  }
  template <class... Args>
  void detail(fmt::format_string<Args...> format, Args&&... args) {
    if (job_.verbose) say(fmt::format(format, std::forward<Args>(args)...));
  }

  const ElasticJob& elastic_;
  const Job& job_;
  LineSink sink_;
  RankOutputs outputs_;
  Fd signals_;
  Secret secret_ = Secret::random();
  Roster roster_;
  Lobby lobby_;
  std::unique_ptr<Discovery> discovery_;
  std::map<std::string, HostEntry> hosts_;
  std::unique_ptr<comm::rendezvous::Server> server_;  // of the group at work
  std::vector<int> members_;
  bool is_stopping_ = false;
  int status_ = 0;
  std::optional<Deadline> give_up_;
};

ElasticSupervisor::ElasticSupervisor(const ElasticJob& elastic)
    : elastic_(elastic),
      job_(elastic.job),
      outputs_(job_.output, 0, sink_),
      signals_(stop_signals()),
      roster_(roster_options(elastic), HostPool(elastic.cooldown, random_draw())),
      lobby_(secret_, places_to_listen(elastic),
             [this](int worker) { return roster_.expects(worker); }) {
  if (elastic.discovery_script.empty()) return;
  DiscoveryOptions options;
  options.script = elastic.discovery_script;
  options.slots_per_host = elastic.slots_per_host;
  discovery_ = std::make_unique<Discovery>(std::move(options),
                                           [this](const std::string& text) { say(text); });
}

int ElasticSupervisor::run() {
  if (!discovery_) carry_out(roster_.hosts_changed(elastic_.hosts, now()));
  while (!is_stopping_ || anything_left()) poll_once();
  hosts_.clear();
  outputs_.finish();
  sink_.write_to_the_end();
  return status_;
}

bool ElasticSupervisor::anything_left() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& entry) { return !entry.second.unwaited.empty(); });
}

// --- what can happen -----------------------------------------------------------------------------

void ElasticSupervisor::poll_once() {
  const bool may_read = sink_.pending_bytes() < kPendingLimit;
  std::vector<pollfd> polls = {{signals_.get(), POLLIN, 0},
                               {sink_.waiting_for(), POLLOUT, 0},
                               {lobby_.poll_fd(), POLLIN, 0},
                               {discovery_ ? discovery_->fd() : -1, POLLIN, 0}};
  const std::size_t first = polls.size();
  std::vector<std::string> names;
  for (const auto& [name, host] : hosts_) {
    names.push_back(name);
    polls.push_back({may_read ? host.link->read_fd() : -1, POLLIN, 0});
    polls.push_back({host.link->write_fd(), POLLOUT, 0});
    polls.push_back({host.link->error_fd(), POLLIN, 0});
  }
  if (::poll(polls.data(), polls.size(), poll_timeout_ms()) < 0) return;
  if (polls[0].revents != 0) read_signals();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const pollfd* events = &polls[first + 3 * i];
    const auto host = hosts_.find(names[i]);
    if (host == hosts_.end()) continue;
    if (events[2].revents != 0) host->second.link->read_errors();
    if (events[1].revents != 0) host->second.link->flush();
    if (events[0].revents != 0) read_from(names[i], host->second);
  }
  if (polls[2].revents != 0) read_lobby();
  if (discovery_ && !is_stopping_) discover();
  sink_.write_some();
  check_deadlines();
}

int ElasticSupervisor::poll_timeout_ms() const {
  std::optional<Deadline> next = give_up_;
  const auto consider = [&](Deadline other) {
    if (!next || other.when() < next->when()) next = other;
  };
  if (const auto tick = roster_.next_tick())
    consider(Deadline::at(Deadline::Clock::time_point(*tick)));
  if (discovery_ && !is_stopping_) consider(discovery_->next());
  for (const auto& [name, host] : hosts_)
    if (host.connect_by) consider(*host.connect_by);
  return next ? next->poll_timeout_ms() : -1;
}

void ElasticSupervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (is_stopping_) {
      end_workers(/*at_once=*/true);
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

void ElasticSupervisor::discover() {
  if (auto hosts = discovery_->work()) carry_out(roster_.hosts_changed(std::move(*hosts), now()));
  if (const std::string& failure = discovery_->first_failure();
      !failure.empty() && roster_.living() == 0 && !is_stopping_) {
    roster_.stop();
    carry_out(EndJob{1, failure});
  }
}

void ElasticSupervisor::read_from(const std::string& name, HostEntry& host) {
  try {
    for (auto& event : host.link->receive()) handle(name, host, event);
  } catch (const Error& error) {
    host.link->kill_command();
    return lose_host(name, error.message());
  }
  if (host.link->closed()) lose_host(name, host.link->reason_of_end());
}

void ElasticSupervisor::handle(const std::string& name, HostEntry& host, exec::Event& event) {
  if (auto* hello = std::get_if<exec::Hello>(&event)) {
    if (host.is_ready) return;
    const auto addresses =
        choose_meeting_addresses({{name, true, hello->from}}, job_.network_interface);
    host.rendezvous = addresses.listen.front().with_port(lobby_.addresses().front().port()).str();
    begin(name, host);
  } else if (const auto* output = std::get_if<exec::Output>(&event)) {
    outputs_.feed(*output);
  } else if (const auto* exited = std::get_if<exec::Exited>(&event)) {
    const int worker = static_cast<int>(exited->id);
    if (host.alive.erase(worker) == 0) return;
    // What it said before its end comes first: whether it was done, left on notice or failed.
    read_lobby();
    lobby_.forget(worker);
    carry_out(roster_.ended(worker, exit_code_of(exited->status),
                            describe_wait_status(exited->status), now()));
  } else if (const auto* end = std::get_if<exec::TaskEnd>(&event)) {
    const int worker = static_cast<int>(end->id);
    host.unwaited.erase(worker);
    if (host.alive.erase(worker) != 0)  // it could not be started
      carry_out(roster_.ended(worker, 1, "could not be started: " + end->error, now()));
    else if (!end->error.empty())
      say(fmt::format("worker {} on {} has ended, but {}", worker, name, end->error));
  }
}

void ElasticSupervisor::lose_host(const std::string& name, const std::string& reason) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return;
  std::set<int> lost = found->second.asked;
  lost.insert(found->second.alive.begin(), found->second.alive.end());
  hosts_.erase(found);
  if (!lost.empty() && !is_stopping_) say(fmt::format("host {} was lost: {}", name, reason));
  for (const int worker : lost) lobby_.forget(worker);
  for (const int worker : lost)
    carry_out(roster_.ended(worker, 1, fmt::format("was lost with its host: {}", reason), now()));
}

void ElasticSupervisor::check_deadlines() {
  std::vector<std::string> silent;
  for (const auto& [name, host] : hosts_)
    if (host.connect_by && host.connect_by->passed()) silent.push_back(name);
  for (const auto& name : silent) {
    hosts_.at(name).link->kill_command();
    lose_host(name, fmt::format("no answer within {:g} s; --start-timeout gives more time",
                                std::chrono::duration<double>(job_.start_timeout).count()));
  }
  if (const auto tick = roster_.next_tick(); tick && *tick <= now()) carry_out(roster_.tick(now()));
  if (give_up_ && give_up_->passed()) {
    give_up_.reset();
    for (auto& [name, host] : hosts_) {
      if (host.unwaited.empty()) continue;
      say(fmt::format("{} did not confirm that its workers have ended", name));
      host.link->kill_command();
      host.unwaited.clear();
    }
  }
}

// --- what the roster decides ---------------------------------------------------------------------

void ElasticSupervisor::carry_out(const Actions& actions) {
  for (const Action& action : actions)
    std::visit([this](const auto& one) { carry_out(one); }, action);
}

void ElasticSupervisor::carry_out(const StartWorker& action) {
  if (is_stopping_) return;
  const std::string& name = action.slot.host;
  HostEntry& host = hosts_[name];
  host.asked.insert(action.worker);
  if (!host.link) {
    try {
      connect(name, host);
    } catch (const Error& error) {
      return lose_host(name, error.message());
    }
  } else if (host.is_ready) {
    begin(name, host);
  }
}

void ElasticSupervisor::connect(const std::string& name, HostEntry& host) {
  host.is_local = is_this_machine(name);
  if (host.is_local) {
    host.link = exec::Link::to_this_machine();
    host.rendezvous = SocketAddress::loopback().with_port(lobby_.addresses().front().port()).str();
    return begin(name, host);
  }
  const auto command = exec::ssh_command(job_.ssh, name);
  detail("connecting: {}", fmt::join(command, " "));
  host.link = exec::Link::through(command, name);
  host.connect_by = Deadline::after(job_.start_timeout);
}

/// The host answers: what was asked for is started.
void ElasticSupervisor::begin(const std::string& name, HostEntry& host) {
  host.connect_by.reset();
  if (!std::exchange(host.is_ready, true)) {
    Environment environment;
    if (!host.is_local) environment = exec::forwardable(current_environment());
    host.link->set_environment(merge_environment(std::move(environment), job_.environment));
  }
  for (const int worker : std::exchange(host.asked, {})) start(name, host, worker);
}

void ElasticSupervisor::start(const std::string& name, HostEntry& host, int worker) {
  const HostPool::Slot& slot = roster_.slot_of(worker);
  exec::Task task;
  task.id = static_cast<exec::TaskId>(worker);
  task.argv = job_.argv;
  task.environment = {fmt::format("KOLO_WORKER={}", worker),
                      fmt::format("KOLO_RENDEZVOUS={}", host.rendezvous),
                      fmt::format("KOLO_HOSTNAME={}", name)};
  task.directory = job_.directory;
  task.streams.to_owner = true;
  if (host.is_local) task.descriptors = job_.descriptors;
  task.secret = secret_.bytes();
  task.share = {slot.index, slot.slots, job_.bind_to};
  task.grace = {job_.grace, job_.grace, job_.grace};
  task.tell_exit = true;
  outputs_.add(worker);
  host.alive.insert(worker);
  host.unwaited.insert(worker);
  detail("starting worker {} on {}", worker, name);
  host.link->start(task);
}

void ElasticSupervisor::carry_out(const KillWorker& action) {
  for (auto& [name, host] : hosts_) {
    if (host.unwaited.contains(action.worker))
      return host.link->kill(static_cast<exec::TaskId>(action.worker));
    if (host.asked.erase(action.worker) != 0)
      return carry_out(roster_.ended(action.worker, 1, "was not needed any longer", now()));
  }
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
    server_ = std::make_unique<comm::rendezvous::Server>(std::move(options));
    port = server_->addresses().front().port();
  }
  const std::string text = fmt::format("generation {}: {} (workers {})", action.generation,
                                       counted(size, "rank"), fmt::join(members_, ", "));
  action.generation == 1 ? detail("{}", text) : say(text);

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
    say(fmt::format("{}{}", action.reason, anything_left() ? "; stopping all ranks" : ""));
  end_workers(/*at_once=*/false);
}

void ElasticSupervisor::end_workers(bool at_once) {
  for (auto& [name, host] : hosts_) {
    host.asked.clear();
    for (const int worker : host.unwaited) {
      const auto task = static_cast<exec::TaskId>(worker);
      at_once ? host.link->kill(task) : host.link->end(task);
    }
  }
  give_up_ = Deadline::after(at_once ? std::chrono::milliseconds(kConfirmationTime)
                                     : job_.grace + kConfirmationTime);
}

}  // namespace

int run_elastic_job(const ElasticJob& job) { return ElasticSupervisor(job).run(); }

}  // namespace kolo::launch::elastic

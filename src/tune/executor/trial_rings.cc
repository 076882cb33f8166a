// The part of TrialTasks that is about elastic trials. Each has a GroupLeader in this process,
// whose workers are tasks of the hosts' custodians. A worker that fails is replaced after a moment;
// when none is left, the trial has failed.
#include <signal.h>

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "base/plural.h"
#include "launch/meeting_place.h"
#include "tune/executor/trial_tasks.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;
using launch::elastic::HostPool;

/// Before a worker that failed is replaced; longer for a program that fails again and again.
constexpr launch::elastic::Cooldown kReplaceAfter{1s, 60s};

std::vector<launch::Host> hosts_with_slots(const std::vector<launch::Placement>& placements) {
  std::vector<launch::Host> hosts;
  for (const auto& placement : placements) hosts.push_back({placement.host, placement.ranks});
  return hosts;
}

}  // namespace

void TrialTasks::begin_ring(Run& run) {
  launch::elastic::RosterOptions options;
  options.start_timeout = 30s;
  launch::elastic::LeaderOrders orders;
  orders.start = [this, &run](int worker, const HostPool::Slot& slot) {
    start_worker(run, worker, slot);
  };
  orders.kill = [&run](int worker) {
    const Rank& rank = run.ranks[static_cast<std::size_t>(worker)];
    if (rank.is_open && rank.host->link) rank.host->link->kill(rank.task);
  };
  orders.end = [this, &run](int status, const std::string& reason) {
    end_ring(run, status, reason);
  };
  orders.say = [&run](const std::string& line) {
    log::debug("trial {}: {}", run.process.id.trial, line);
  };
  orders.formed = [&run](launch::elastic::Generation generation, const std::vector<int>& members) {
    log::debug("trial {}: generation {} has {}", run.process.id.trial, generation,
               counted(static_cast<int>(members.size()), "rank"));
  };
  const auto& hosts = hosts_.all();
  const bool all_local =
      std::all_of(hosts.begin(), hosts.end(), [](const TrialHost& host) { return host.is_local; });
  run.leader = std::make_unique<launch::elastic::GroupLeader>(
      options, HostPool(kReplaceAfter, launch::elastic::random_draw()),
      all_local ? SocketAddress::loopback() : SocketAddress::from_numeric("0.0.0.0"),
      std::move(orders));
  run.leader->hosts_changed(hosts_with_slots(run.process.placements));
}

std::string TrialTasks::door_for(const Run& run, const TrialHost& host) const {
  const auto port = run.leader->door().port();
  if (host.is_local) return SocketAddress::loopback().with_port(port).str();
  const auto addresses =
      launch::choose_meeting_addresses({{host.name, true, host.hello ? host.hello->from : ""}}, "");
  return addresses.listen.front().with_port(port).str();
}

void TrialTasks::start_worker(Run& run, int worker, const HostPool::Slot& slot) {
  const RunProcess& process = run.process;
  const auto number = static_cast<std::size_t>(worker);
  TrialHost& host = hosts_.at(slot.host);
  run.ranks.resize(std::max(run.ranks.size(), number + 1));
  Rank& rank = run.ranks[number];
  rank.host = &host;
  rank.err = RunOutput(file_of_rank(process.err, number));
  if (!host.is_ready()) {
    rank.is_open = false;
    return lose_worker(run, number, 1, "has no host: it is lost");
  }
  exec::Task task = task_of(run, number, {slot.host, 0, slot.slots, host.is_local});
  const auto add = [&task](const std::vector<std::string>& variables) {
    task.environment.insert(task.environment.end(), variables.begin(), variables.end());
  };
  add(host.is_local ? process.here : process.elsewhere);
  add({fmt::format("KOLO_WORKER={}", worker),
       fmt::format("KOLO_RENDEZVOUS={}", door_for(run, host)),
       fmt::format("KOLO_HOSTNAME={}", host.name), "KOLO_ELASTIC_ONLY=1"});
  task.secret = run.leader->secret().bytes();
  task.share = {slot.index, slot.slots};
  task.tell_exit = true;
  host.link->start(task);
}

void TrialTasks::lose_worker(Run& run, std::size_t worker, int code, const std::string& how) {
  Rank& rank = run.ranks[worker];
  if (std::exchange(rank.has_exited, true)) return;
  if (code != 0)
    run.last_loss = {.id = run.process.id,
                     .error = fmt::format("rank {} {}", worker, how),
                     .was_terminated = code == 128 + SIGTERM || code == 128 + SIGINT,
                     .said = rank.err};
  run.leader->ended(static_cast<int>(worker), code, how);
}

void TrialTasks::end_ring(Run& run, int status, const std::string& reason) {
  if (status != 0) {
    run.end.error = run.last_loss.error.empty() ? reason : run.last_loss.error;
    run.end.was_terminated = run.last_loss.was_terminated;
    run.end.said = run.last_loss.said;
  } else if (!run.leader->has_formed_group()) {
    run.end.error =
        "its number of ranks may change, but the program does not use kolo::elastic::run() "
        "(elastic.run in Python), nor a Trainer with the option elastic; use one of them, or give "
        "a fixed number of ranks";
  }
  end_ranks(run, /*at_once=*/false);
}

int TrialTasks::ranks_in(const std::vector<launch::Placement>& placements) {
  int ranks = 0;
  for (const auto& placement : placements) ranks += placement.ranks;
  return ranks;
}

void TrialTasks::resize(RunId id, int ranks) {
  Run* run = find(id);
  if (run == nullptr || !run->process.is_elastic) return;
  auto& placements = run->process.placements;
  for (int now = ranks_in(placements); now > ranks && now > 1; --now) {
    launch::Placement& last = placements.back();
    hosts_.give_back({{last.host, 0, 1, last.is_local}});
    if (--last.ranks == 0) placements.pop_back();
  }
  for (int now = ranks_in(placements); now < ranks; ++now) hosts_.add_rank(placements);
  run->is_shrinking = true;
  if (run->leader) run->leader->hosts_changed(hosts_with_slots(placements));
  note_shrunk(*run);
}

/// Tells whoever waits for the places that they are free.
void TrialTasks::note_shrunk(Run& run) {
  const auto open = std::count_if(run.ranks.begin(), run.ranks.end(),
                                  [](const Rank& rank) { return rank.is_open; });
  if (!run.is_shrinking || open > ranks_in(run.process.placements)) return;
  run.is_shrinking = false;
  shrunk_.push_back(run.process.id);
}

bool TrialTasks::is_in_group(RunId id) {
  const Run* run = find(id);
  return run == nullptr || !run->process.is_elastic ||
         (run->leader && run->leader->has_formed_group());
}

void TrialTasks::hear_rings() {
  std::vector<std::int64_t> trials;
  for (const auto& [trial, run] : runs_)
    if (run.leader) trials.push_back(trial);
  for (const auto trial : trials) {
    auto& leader = *runs_.at(trial).leader;
    leader.hear();
    leader.keep_time();
    forget_if_over(trial);
  }
}

void TrialTasks::add_polls(std::vector<pollfd>& polls) const {
  hosts_.add_polls(polls);
  for (const auto& [trial, run] : runs_)
    if (run.leader) polls.push_back({run.leader->poll_fd(), POLLIN, 0});
}

int TrialTasks::poll_timeout_ms() const {
  int timeout = hosts_.poll_timeout_ms();
  for (const auto& [trial, run] : runs_) {
    const auto due = run.leader ? run.leader->next() : std::nullopt;
    if (!due) continue;
    const int left = due->poll_timeout_ms();
    timeout = timeout < 0 ? left : std::min(timeout, left);
  }
  return timeout;
}

}  // namespace kolo::tune

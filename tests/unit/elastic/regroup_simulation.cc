#include "unit/elastic/regroup_simulation.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace kolo::test {

using namespace comm::elastic;
using namespace launch::elastic;
using namespace std::chrono_literals;

namespace {

constexpr long kSteps = 12;
constexpr long kLimit = 200'000;  // of events; a run needs some hundreds

RosterOptions options() {
  RosterOptions options;
  options.start_ranks = 2;
  options.least_ranks = 1;
  options.most_ranks = 5;
  options.start_timeout = 30s;
  options.elastic_timeout = 60s;
  options.hosts_may_come = true;
  return options;
}

}  // namespace

RegroupSimulation::RegroupSimulation(std::uint64_t number, RegroupDefect defect)
    : random_(Random(number).stream("regroup")),
      defect_(defect),
      roster_(options(), HostPool(Cooldown{1s, 8s}, [] { return 0.5; })),
      misfortunes_(static_cast<int>(random_.below(6))) {}

std::string RegroupSimulation::run() {
  carry_out(roster_.hosts_changed({{"a", 2}, {"b", 2}}, now_));
  for (long events = 0; happen(); ++events) {
    if (!wrong_.empty()) return wrong_;
    if (events == kLimit) return "it does not come to an end";
  }
  for (const auto& [worker, process] : processes_)
    if (process.place != Place::gone) fail(fmt::format("worker {} is stuck", worker));
  if (is_launcher_alive_ && !roster_.is_over()) fail("the launcher waits for ever");
  return wrong_;
}

/// One event, chosen among those that can happen. False at the end.
bool RegroupSimulation::happen() {
  std::vector<std::function<void()>> possible;
  for (auto& [id, process] : processes_) {
    if (process.place == Place::gone || process.is_stopped) continue;
    const int worker = id;
    Process* p = &process;
    if (process.place != Place::starting || is_launcher_alive_)
      possible.emplace_back([=, this] { work(worker, *p); });
    if (!process.inbox.empty())
      possible.emplace_back([=] {
        p->member.take(p->inbox.front());
        p->inbox.pop_front();
      });
    if (!process.outbox.empty())
      possible.emplace_back([=, this] {
        const FromWorker message = p->outbox.front();
        p->outbox.pop_front();
        if (!is_launcher_alive_ || !p->is_heard) return;
        if (const auto* ready = std::get_if<Ready>(&message))
          carry_out(roster_.ready(worker, *ready, now_));
        else if (const auto* finished = std::get_if<Finished>(&message))
          carry_out(roster_.finished(worker, *finished, now_));
        else
          carry_out(roster_.leaving(worker, now_));
      });
  }
  if (!ends_.empty() && is_launcher_alive_)
    possible.emplace_back([this] {
      const Ended end = ends_.front();
      ends_.pop_front();
      carry_out(roster_.ended(end.worker, end.code, "ended", now_));
    });
  if (possible.empty() && !(is_launcher_alive_ && !roster_.is_over())) return false;
  if (misfortunes_ > 0 && random_.below(60) == 0) {
    --misfortunes_;
    misfortune();
    return true;
  }
  // Now and then time passes; it must when nothing else can happen.
  if (is_launcher_alive_ && (possible.empty() || random_.below(20) == 0)) {
    const auto next = roster_.next_tick();
    if (!next && possible.empty()) {
      if (go_on_after_stop()) return true;
      fail("nothing can happen any more");
      return true;
    }
    // Now and then, the others take until something is due.
    const bool is_long = possible.empty() || (next && random_.below(10) == 0);
    pass_time(is_long ? std::max(now_, *next) : now_ + 10ms);
    return true;
  }
  possible[random_.below(possible.size())]();
  return true;
}

/// The signs of life come before the launcher looks at its clock, as they do in GroupLeader.
void RegroupSimulation::pass_time(Time to) {
  now_ = to;
  for (const auto& [worker, process] : processes_) {
    const bool has_pulse =
        process.place != Place::gone && process.place != Place::starting &&
        (!process.is_stopped || defect_ == RegroupDefect::the_stopped_seem_alive);
    if (has_pulse && process.is_heard) carry_out(roster_.alive(worker, now_));
  }
  carry_out(roster_.tick(now_));
}

/// Somebody lets those go on that nobody can find fault with: a whole group that has lost nobody,
/// as that cannot be told from one that takes long, and those that have taken leave, of which only
/// the end is awaited.
bool RegroupSimulation::go_on_after_stop() {
  bool has_gone_on = false;
  const auto go_on = [&](Process& process) {
    if (!process.is_stopped || process.place == Place::gone) return;
    process.is_stopped = false;
    has_gone_on = true;
  };
  for (auto& [worker, process] : processes_)
    if (process.has_taken_leave) go_on(process);
  if (has_gone_on || groups_.empty()) return has_gone_on;
  const auto& members = groups_.rbegin()->second;
  const bool is_whole = std::all_of(members.begin(), members.end(), [&](int member) {
    return processes_.at(member).place != Place::gone;
  });
  for (const int member : members)
    if (is_whole) go_on(processes_.at(member));
  return has_gone_on;
}

/// Its custodian ends it where the launcher cannot: when that is gone, or is not reached. One that
/// has not said that it is ready is as one that takes long to start.
void RegroupSimulation::stop(int worker) {
  Process& process = processes_.at(worker);
  const bool is_unheard = process.member.generation() == 0 && !process.outbox.empty();
  if (process.place == Place::starting || is_unheard) return;
  if (!is_launcher_alive_ || !process.is_heard) return end(worker, 137);
  process.is_stopped = true;
}

void RegroupSimulation::misfortune() {
  std::vector<int> living;
  for (const auto& [worker, process] : processes_)
    if (process.place != Place::gone) living.push_back(worker);
  const int victim = living.empty() ? -1 : living[random_.below(living.size())];
  switch (random_.below(9)) {
    case 0:
    case 1:
    case 2:  // kill -9, perhaps of two at once
      if (victim < 0) return;
      end(victim, 137);
      if (const int other = living[random_.below(living.size())]; random_.below(3) == 0)
        if (processes_.at(other).place != Place::gone) end(other, 137);
      return;
    case 3:  // notice
      if (victim >= 0) processes_.at(victim).member.notice();
      return;
    case 4: {  // a host is cut off; its workers do not know it
      if (victim < 0) return;
      const std::string host = processes_.at(victim).host;
      for (auto& [worker, process] : processes_) {
        if (process.host != host || process.place == Place::gone || !process.is_heard) continue;
        process.is_heard = false;
        process.inbox.clear();
        if (process.is_stopped) end(worker, 137);
        if (is_launcher_alive_) carry_out(roster_.ended(worker, 1, "host lost", now_));
      }
      return;
    }
    case 5: carry_out(roster_.hosts_changed({{"a", 2}, {"b", 2}, {"c", 1}}, now_)); return;
    case 6: carry_out(roster_.hosts_changed({{"b", 2}}, now_)); return;
    case 7:  // the launcher dies, and custodians tell the workers
      if (random_.below(2) == 0) return;
      is_launcher_alive_ = false;
      for (auto& [worker, process] : processes_) {
        if (process.place == Place::starting || process.is_stopped) end(worker, 143);
        process.member.notice();
      }
      return;
    case 8:
      if (victim >= 0) stop(victim);
      return;
  }
}

void RegroupSimulation::carry_out(const Actions& actions) {
  if (!is_launcher_alive_) return;
  for (const Action& action : actions) {
    if (const auto* start = std::get_if<StartWorker>(&action)) {
      processes_[start->worker].host = start->slot.host;
    } else if (const auto* kill = std::get_if<KillWorker>(&action)) {
      if (processes_.at(kill->worker).place != Place::gone) end(kill->worker, 137);
    } else if (const auto* retire = std::get_if<RetireWorker>(&action)) {
      processes_.at(retire->worker).inbox.emplace_back(Retire{});
    } else if (const auto* group = std::get_if<FormGroup>(&action)) {
      form(*group);
    } else if (const auto* change = std::get_if<RequestChange>(&action)) {
      for (const int member : groups_.at(change->generation))
        processes_.at(member).inbox.emplace_back(Change{change->generation});
    } else if (const auto* over = std::get_if<TellOver>(&action)) {
      Process& process = processes_.at(over->worker);
      process.inbox.emplace_back(Over{over->generation});
      process.has_taken_leave = true;
    } else if (const auto* loss = std::get_if<AnnounceLoss>(&action)) {
      const int lost = groups_.rbegin()->second.at(static_cast<std::size_t>(loss->rank));
      for (const int member : groups_.rbegin()->second)
        processes_.at(member).known_lost.insert(lost);
    } else if (std::get_if<EndJob>(&action) != nullptr) {
      for (auto& [worker, process] : processes_)
        if (process.place != Place::gone) end(worker, 143);
    }
  }
}

void RegroupSimulation::form(const FormGroup& group) {
  if (!groups_.empty() && group.generation <= groups_.rbegin()->first)
    fail(fmt::format("generation {} is formed twice", group.generation));
  groups_[group.generation] = group.members;
  GroupPlan plan;
  plan.generation = group.generation;
  plan.host_of_rank.assign(group.members.size(), 0);
  for (const int member : group.members) {
    Process& process = processes_.at(member);
    if (process.place == Place::working)
      fail(fmt::format("worker {} is put into generation {} while it is at work", member,
                       group.generation));
    if (!process.is_heard)
      fail(fmt::format("worker {} of a host that is cut off is put into generation {}", member,
                       group.generation));
    if (defect_ != RegroupDefect::plans_get_lost || random_.below(10) != 0)
      process.inbox.emplace_back(plan);
    ++plan.rank;
  }
}

void RegroupSimulation::work(int worker, Process& process) {
  switch (process.place) {
    case Place::starting: return leave(process, -1);
    case Place::waiting: return between_groups(worker, process);
    case Place::working: return meet(worker, process);
    case Place::gone: return;
  }
}

void RegroupSimulation::between_groups(int worker, Process& process) {
  // Nobody at the other end: what a broken connection tells.
  if (!process.is_heard) process.member.notice();
  switch (process.member.next()) {
    case Next::wait: return;
    case Next::join:
      process.member.join();
      process.place = Place::working;
      process.arrivals = 1;
      process.known_lost.clear();
      return;
    case Next::leave: process.outbox.emplace_back(Leaving{}); [[fallthrough]];
    case Next::finish: return end(worker, 0);
  }
}

/// At a meeting: it is passed when all have arrived, and lost when somebody will not.
void RegroupSimulation::meet(int worker, Process& process) {
  const auto& members = groups_.at(process.member.generation());
  bool all_there = true;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Process& other = processes_.at(members[rank]);
    const bool is_in =
        other.place == Place::working && other.member.generation() == process.member.generation();
    const bool has_been = other.member.generation() >= process.member.generation();
    if (has_been && other.arrivals >= process.arrivals && is_in) continue;
    all_there = false;
    const bool is_given_up = other.is_stopped && random_.below(20) == 0;
    const bool is_lost = other.place == Place::gone || process.known_lost.contains(members[rank]) ||
                         (has_been && !is_in) || is_given_up;
    if (is_lost && members[rank] != worker) {
      // Those who passed this meeting have committed what this one has not.
      leave(process, static_cast<int>(rank));
      return;
    }
  }
  if (all_there) pass(worker, process);
}

void RegroupSimulation::pass(int worker, Process& process) {
  const auto& members = groups_.at(process.member.generation());
  if (process.arrivals == 1) {
    long most = 0, least = kSteps;
    for (const int member : members) {
      const Process& other = processes_.at(member);
      if (!other.is_synced || other.arrivals > 1) continue;
      most = std::max(most, other.commits);
      least = std::min(least, other.commits);
    }
    if (most > least + 1)
      fail(fmt::format("commits of the survivors are from {} to {}", least, most));
    for (const int member : members) most = std::max(most, processes_.at(member).commits);
    process.commits = most;
    process.is_synced = true;
  } else if (process.commits < kSteps) {
    ++process.commits;
    const bool changes = std::any_of(members.begin(), members.end(), [&](int member) {
      return processes_.at(member).member.wish() == Wish::change;
    });
    if (changes) return leave(process, -1);
  } else {
    process.outbox.emplace_back(Finished{process.member.generation()});
    return end(worker, 0);
  }
  ++process.arrivals;
}

void RegroupSimulation::leave(Process& process, int blamed) {
  const FromWorker message = process.member.leave_group(blamed);
  process.has_taken_leave = std::holds_alternative<Leaving>(message);
  process.outbox.push_back(message);
  process.place = Place::waiting;
}

void RegroupSimulation::end(int worker, int code) {
  Process& process = processes_.at(worker);
  process.place = Place::gone;
  // What it said before its end is heard before its end.
  for (; !process.outbox.empty() && is_launcher_alive_ && process.is_heard;
       process.outbox.pop_front()) {
    const FromWorker message = process.outbox.front();
    if (const auto* finished = std::get_if<Finished>(&message))
      carry_out(roster_.finished(worker, *finished, now_));
    else if (std::get_if<Leaving>(&message) != nullptr)
      carry_out(roster_.leaving(worker, now_));
  }
  if (process.is_heard && !(defect_ == RegroupDefect::deaths_are_not_told && code == 137))
    ends_.push_back({worker, code});
}

}  // namespace kolo::test

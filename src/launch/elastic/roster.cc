#include "launch/elastic/roster.h"

#include <algorithm>

#include "base/errors.h"
#include "base/plural.h"

namespace kolo::launch::elastic {

using comm::elastic::Finished;
using comm::elastic::Ready;

namespace {

/// After somebody else has taken a slot.
constexpr Time kAskAgain = std::chrono::seconds(1);

constexpr const char* kMute = "has given no sign of life";

}  // namespace

int Roster::count(Phase phase) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.second.phase == phase;
  }));
}

// --- events --------------------------------------------------------------------------------------

Actions Roster::hosts_changed(std::vector<Host> hosts, Time now) {
  hosts_.set(std::move(hosts));
  Actions actions;
  for (auto& [id, worker] : workers_) {
    if (hosts_.has(worker.slot) || worker.is_retired || worker.phase == Phase::going) continue;
    worker.is_retired = true;
    if (worker.phase == Phase::member) group_is_to_end(now);
    actions.emplace_back(Say{fmt::format(
        "host {} {}; worker {} leaves it", worker.slot.host,
        hosts_.contains(worker.slot.host) ? "has fewer slots" : "is no longer listed", id)});
    actions.emplace_back(RetireWorker{id});
  }
  for (auto& action : settle(now)) actions.push_back(std::move(action));
  return actions;
}

Actions Roster::ready(int id, const Ready& message, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || found->second.phase == Phase::going) return {};
  Worker& worker = found->second;
  // What a worker says of an older group than the one it was put into has been overtaken.
  if (worker.phase == Phase::member && message.left != generation_) return {};
  if (worker.phase == Phase::member && is_finishing_) {
    worker.phase = Phase::going;
    worker.has_finished = true;
    return {TellOver{id, generation_}};
  }
  if (worker.phase == Phase::member && message.blamed >= 0 &&
      message.blamed < static_cast<int>(members_.size())) {
    const auto blamed = workers_.find(members_[static_cast<std::size_t>(message.blamed)]);
    if (blamed != workers_.end() && blamed->second.phase == Phase::member &&
        !blamed->second.given_up)
      blamed->second.given_up = now;
  }
  if (worker.phase == Phase::member) {
    group_is_to_end(now);
    if (!awaited_since_) awaited_since_ = now;
  }
  worker.phase = Phase::waiting;
  worker.given_up.reset();
  worker.heard = now;
  has_been_joined_ = true;
  Actions actions;
  if (worker.is_retired) actions.emplace_back(RetireWorker{id});
  for (auto& action : settle(now)) actions.push_back(std::move(action));
  return actions;
}

Actions Roster::finished(int id, const Finished& message, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || message.generation != generation_) return {};
  found->second.phase = Phase::going;
  found->second.has_finished = true;
  is_finishing_ = true;
  group_is_to_end(now);
  return settle(now);
}

Actions Roster::leaving(int id, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || found->second.phase == Phase::going || is_over_) return {};
  Worker& worker = found->second;
  if (worker.phase == Phase::member) group_is_to_end(now);
  worker.phase = Phase::going;
  worker.has_left = true;
  if (!worker.is_retired) hosts_.avoid(worker.slot.host);
  Actions actions;
  actions.emplace_back(Say{fmt::format("worker {} on {} leaves", id, worker.slot.host)});
  for (auto& action : settle(now)) actions.push_back(std::move(action));
  return actions;
}

Actions Roster::alive(int id, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return {};
  found->second.heard = now;
  if (found->second.phase != Phase::waiting) return {};
  const bool is_worth_it = std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.second.phase == Phase::member || may_join(entry.second, now);
  });
  if (is_worth_it) return {TellToWait{id}};
  return {};
}

/// It is starting, and has not taken longer for it than others wait for a rank.
bool Roster::may_join(const Worker& worker, Time now) const {
  return worker.phase == Phase::starting && !worker.is_retired &&
         now < worker.began + std::max(options_.start_timeout, longest_timeout());
}

void Roster::timeout(int id, Time of_operations) {
  if (const auto found = workers_.find(id); found != workers_.end())
    found->second.timeout = of_operations;
}

Actions Roster::refused(int id, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return {};
  const HostPool::Slot slot = found->second.slot;
  workers_.erase(found);
  hosts_.give_back(slot);
  hosts_.rest(slot.host, now + kAskAgain);
  return is_over_ ? Actions() : settle(now);
}

Actions Roster::ended(int id, int code, const std::string& how, Time now) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return {};
  const Worker worker = std::move(found->second);
  workers_.erase(found);
  hosts_.give_back(worker.slot);
  if (worker.phase == Phase::member) group_is_to_end(now);
  Actions actions;
  if (worker.rank >= 0 && static_cast<std::size_t>(worker.rank) < members_.size() &&
      members_[static_cast<std::size_t>(worker.rank)] == id)
    actions.emplace_back(AnnounceLoss{worker.rank, how, code != 0});
  if (is_over_) return actions;

  // A program that is no elastic one ends as any program does, perhaps without a word.
  const bool was_at_work =
      worker.phase == Phase::member || (worker.phase == Phase::starting && generation_ == 0);
  if (code == 0 && (worker.has_finished || was_at_work)) {
    is_finishing_ = true;
  } else if (worker.has_left || worker.is_retired) {
    // Asked to go: whatever its status, nothing has failed.
  } else {
    last_failure_ = code != 0 ? code : 1;
    how_last_failed_ = fmt::format("worker {} on {} {}", id, worker.slot.host, how);
    actions.emplace_back(Say{how_last_failed_});
    hosts_.blacklist(worker.slot.host, now);
    if (is_finishing_) end_job(last_failure_, "a worker failed after others had finished", actions);
  }
  for (auto& action : settle(now)) actions.push_back(std::move(action));
  return actions;
}

Actions Roster::tick(Time now) {
  Actions actions;
  for (auto& [id, worker] : workers_) {
    const auto found = stuck(worker);
    if (!found || found->at > now) continue;
    worker.is_killed = true;
    actions.emplace_back(Say{
        fmt::format("worker {} on {} {} for {:g} s; it is killed", id, worker.slot.host, found->why,
                    std::chrono::duration<double>(found->at - found->since).count())});
    actions.emplace_back(KillWorker{id});
  }
  for (auto& action : settle(now)) actions.push_back(std::move(action));
  return actions;
}

/// Workers are parts of one program, but they may have been started with settings of their own.
Time Roster::longest_timeout() const {
  std::optional<Time> longest;
  for (const auto& [id, worker] : workers_)
    if (worker.timeout) longest = std::max(longest.value_or(Time{0}), *worker.timeout);
  return longest.value_or(options_.group_timeout);
}

/// The first of its reasons, if there is one.
std::optional<Roster::Stuck> Roster::stuck(const Worker& worker) const {
  std::optional<Stuck> first;
  const auto consider = [&](std::optional<Time> since, Time patience, const char* why) {
    if (since && (!first || *since + patience < first->at))
      first = Stuck{*since, *since + patience, why};
  };
  if (worker.is_killed) return first;
  if (worker.phase == Phase::waiting && worker.is_retired)  // it counts until it has left
    consider(worker.heard, options_.stuck_timeout, kMute);
  if (worker.phase != Phase::member) return first;
  consider(worker.given_up, options_.stuck_timeout, "was given up by others and has not answered");
  if (ending_since_)
    consider(std::max(*ending_since_, worker.heard), options_.stuck_timeout, kMute);
  consider(awaited_since_, longest_timeout() + options_.stuck_timeout,
           "has been waited for by others");
  return first;
}

std::optional<Time> Roster::next_tick() const {
  if (is_over_) return std::nullopt;
  std::optional<Time> next;
  const auto consider = [&](std::optional<Time> time, Time after) {
    if (time && (!next || *time + after < *next)) next = *time + after;
  };
  for (const auto& [id, worker] : workers_)
    if (const auto found = stuck(worker)) consider(found->at, Time{0});
  if (is_finishing_) return next;
  consider(hosts_.next_return(settled_), Time{0});
  if (count(Phase::waiting) >= needed()) consider(first_waits_since_, options_.start_timeout);
  consider(arrived_since_, options_.start_timeout);
  if (is_short()) consider(short_since_, options_.elastic_timeout);
  return next;
}

// --- decisions -----------------------------------------------------------------------------------

Actions Roster::settle(Time now) {
  Actions actions;
  settled_ = now;
  if (is_over_) return actions;
  if (is_finishing_) {
    if (workers_.empty()) end_job(0, "", actions);
    // A worker that was not in the group has nothing left to do. If there was no group, these are
    // programs of another kind, and each does its work.
    for (auto& [id, worker] : workers_) {
      const bool is_outside =
          worker.phase == Phase::waiting || (worker.phase == Phase::starting && generation_ > 0);
      if (!is_outside) continue;
      worker.phase = Phase::going;
      worker.is_retired = true;
      actions.emplace_back(RetireWorker{id});
      actions.emplace_back(KillWorker{id});
    }
    return actions;
  }
  start_workers(now, actions);
  form_group(now, actions);
  if (!is_over_) request_change(now, actions);
  if (!is_over_) end_if_hopeless(now, actions);
  return actions;
}

void Roster::start_workers(Time now, Actions& actions) {
  if (options_.reset_limit && generation_ > static_cast<Generation>(*options_.reset_limit)) return;
  const auto places = [&] { return static_cast<int>(workers_.size()) - count(Phase::going); };
  while (places() < options_.most_ranks) {
    const auto slot = hosts_.take(now);
    if (!slot) return;
    const int id = next_worker_++;
    workers_[id].slot = *slot;
    workers_[id].began = now;
    actions.emplace_back(StartWorker{id, *slot});
  }
}

void Roster::form_group(Time now, Actions& actions) {
  if (count(Phase::member) > 0) return;  // they have not left the last group
  std::vector<int> ranks;
  for (const auto& [id, worker] : workers_)
    if (worker.phase == Phase::waiting && !worker.is_retired) ranks.push_back(id);
  if (generation_ == 0 && !ranks.empty() && !first_waits_since_) first_waits_since_ = now;
  if (static_cast<int>(ranks.size()) < needed()) return;
  // The first group waits for all who have been started, the others for nobody.
  if (generation_ == 0 && count(Phase::starting) > 0 &&
      now < *first_waits_since_ + options_.start_timeout)
    return;
  if (options_.reset_limit && generation_ > static_cast<Generation>(*options_.reset_limit))
    return end_job(
        last_failure_,
        fmt::format("the group has changed {} (--reset-limit), and has lost a rank again",
                    counted(*options_.reset_limit, "time")),
        actions);

  // Whoever has been there longer has the lower rank; numbers of workers only grow.
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    const int rank_a = workers_.at(a).rank, rank_b = workers_.at(b).rank;
    return (rank_a < 0 ? next_worker_ : rank_a) < (rank_b < 0 ? next_worker_ : rank_b);
  });
  ++generation_;
  members_ = ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Worker& worker = workers_.at(ranks[rank]);
    worker.phase = Phase::member;
    worker.rank = static_cast<int>(rank);
    worker.heard = now;
  }
  ending_since_.reset();
  awaited_since_.reset();
  first_waits_since_.reset();
  short_since_.reset();
  arrived_since_.reset();
  actions.emplace_back(FormGroup{generation_, std::move(ranks)});
}

/// Workers have come while the group is at work.
void Roster::request_change(Time now, Actions& actions) {
  const bool has_newcomer = std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    return entry.second.phase == Phase::waiting && entry.second.rank < 0 &&
           !entry.second.is_retired;
  });
  if (!has_newcomer || count(Phase::member) == 0 || change_requested_ == generation_) {
    arrived_since_.reset();
    return;
  }
  if (!arrived_since_) arrived_since_ = now;
  // Several that are started together enter together.
  if (count(Phase::starting) > 0 && now < *arrived_since_ + options_.start_timeout) return;
  change_requested_ = generation_;
  group_is_to_end(now);
  arrived_since_.reset();
  actions.emplace_back(RequestChange{generation_});
}

}  // namespace kolo::launch::elastic

#include "exec/task_table.h"

#include <signal.h>

#include <algorithm>

#include "base/errors.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;

/// A process may fork between being seen and being killed, so the table looks again.
constexpr auto kLookAgain = 100ms;
constexpr auto kKillAgain = 5s;

}  // namespace

void TaskTable::add(OwnerId owner, const Task& task, pid_t leader, std::string mark) {
  running_[leader] = {owner, task.id, std::move(mark), task.grace, std::nullopt};
  leaders_[{owner, task.id}] = leader;
}

bool TaskTable::contains(OwnerId owner, TaskId id) const {
  if (leaders_.contains({owner, id})) return true;
  return std::any_of(ending_.begin(), ending_.end(), [&](const Ending& ending) {
    return ending.owner == owner && ending.id == id;
  });
}

void TaskTable::end_in(std::pair<const pid_t, Running>& entry, std::chrono::milliseconds grace,
                       Time now) {
  auto& [leader, running] = entry;
  const Time kill_at = now + grace;
  if (running.kill_at && *running.kill_at <= kill_at) return;
  if (grace.count() == 0) {
    processes_.signal_group(leader, SIGKILL);
    running.kill_at = now + kKillAgain;
  } else {
    processes_.signal_group(leader, SIGTERM);
    running.kill_at = kill_at;
  }
  if (!next_kill_ || *running.kill_at < *next_kill_) next_kill_ = running.kill_at;
}

void TaskTable::end(OwnerId owner, TaskId id, Time now) {
  const auto found = leaders_.find({owner, id});
  if (found == leaders_.end()) return;
  auto& entry = *running_.find(found->second);
  if (!entry.second.kill_at) end_in(entry, entry.second.grace.end, now);
}

void TaskTable::kill(OwnerId owner, TaskId id, Time now) {
  const auto found = leaders_.find({owner, id});
  if (found != leaders_.end()) end_in(*running_.find(found->second), 0ms, now);
  for (auto& ending : ending_)
    if (ending.owner == owner && ending.id == id) ending.kill_at = std::min(ending.kill_at, now);
}

void TaskTable::owner_lost(OwnerId owner, Time now) {
  for (auto& entry : running_)
    if (entry.second.owner == owner) end_in(entry, entry.second.grace.owner_lost, now);
}

void TaskTable::about_to_reap(pid_t process) {
  const auto found = running_.find(process);
  if (found == running_.end()) return;
  const bool at_once = found->second.grace.left_behind.count() == 0;
  processes_.signal_group(process, at_once ? SIGKILL : SIGTERM);
}

std::optional<TaskTable::Event> TaskTable::reaped(pid_t process, int status, Time now) {
  for (auto& ending : ending_) ending.left.erase(process);
  const auto found = running_.find(process);
  if (found == running_.end()) return std::nullopt;
  Running& running = found->second;
  // A task that is being ended has no more time for its rest than it had for itself.
  const Time kill_at = running.kill_at ? std::min(*running.kill_at, now + running.grace.left_behind)
                                       : now + running.grace.left_behind;
  const Event event{running.owner, running.id, status};
  ending_.push_back({running.owner,
                     running.id,
                     std::move(running.mark),
                     status,
                     kill_at,
                     std::max(kill_at, now) + kLongestDeath,
                     {}});
  leaders_.erase({event.owner, event.id});
  running_.erase(found);
  return event;
}

void TaskTable::find_left(Ending& ending, const std::vector<pid_t>& orphans, Time now) {
  const bool kill = now >= ending.kill_at;
  for (const pid_t process : orphans) {
    const bool is_known = ending.left.contains(process);
    if (is_known && !kill) continue;  // it was told
    const Membership member = processes_.membership(process, ending.mark);
    if (member == Membership::yes) processes_.signal(process, kill ? SIGKILL : SIGTERM);
    // Of one that is ending already nobody knows whose it was: wait for it.
    if (member != Membership::no) ending.left.insert(process);
  }
}

std::vector<TaskTable::Event> TaskTable::look(Time now) {
  looked_ = now;
  if (next_kill_ && *next_kill_ <= now) {
    next_kill_.reset();
    for (auto& [leader, running] : running_) {
      if (!running.kill_at) continue;
      if (*running.kill_at <= now) {
        processes_.signal_group(leader, SIGKILL);
        running.kill_at = now + kKillAgain;
      }
      if (!next_kill_ || *running.kill_at < *next_kill_) next_kill_ = running.kill_at;
    }
  }
  std::vector<Event> events;
  if (ending_.empty()) return events;
  auto orphans = processes_.children();
  std::erase_if(orphans, [this](pid_t process) { return running_.contains(process); });
  std::erase_if(ending_, [&](Ending& ending) {
    // Whoever is no longer a child here was waited for.
    std::erase_if(ending.left, [&](pid_t process) {
      return std::find(orphans.begin(), orphans.end(), process) == orphans.end();
    });
    find_left(ending, orphans, now);
    Event event{ending.owner, ending.id, ending.status};
    if (!ending.left.empty()) {
      if (now < ending.give_up_at) return false;
      // Those of whom nobody could tell whose they are cost no other task its result.
      for (const pid_t process : ending.left)
        if (processes_.membership(process, ending.mark) == Membership::yes)
          event.error = fmt::format("process {} of it cannot be killed", process);
    }
    events.push_back(std::move(event));
    return true;
  });
  return events;
}

std::optional<TaskTable::Time> TaskTable::next_look() const {
  std::optional<Time> next = next_kill_;
  if (!ending_.empty()) {
    const Time again = looked_ + kLookAgain;
    if (!next || again < *next) next = again;
  }
  return next;
}

}  // namespace kolo::exec

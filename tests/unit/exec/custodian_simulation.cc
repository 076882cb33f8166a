#include "unit/exec/custodian_simulation.h"

#include <fmt/format.h>

#include <algorithm>

namespace kolo::test {

using namespace exec;
using namespace std::chrono_literals;

namespace {

constexpr long kLimit = 100'000;  // of events; a schedule needs some hundreds

}  // namespace

CustodianSimulation::CustodianSimulation(std::uint64_t number, CustodianDefect defect)
    : random_(Random(number).stream("custodian")), defect_(defect) {
  processes_.on_wrong = [this](const std::string& text) { fail(text); };
  processes_.on_signal = [this](pid_t pid, const SimulatedProcesses::Process& process) {
    if (!tasks_.at(process.task).must_end)
      fail(
          fmt::format("process {} of task {} is signalled, which need not end", pid, process.task));
  };
  processes_.forgets_the_dying = defect == CustodianDefect::forgets_the_dying;
  for (std::uint64_t i = 0, count = 1 + random_.below(3); i < count; ++i)
    owners_[i + 1].to_start = 1 + static_cast<int>(random_.below(5));
}

std::string CustodianSimulation::run() {
  for (long events = 0; happen(); ++events) {
    if (!wrong_.empty()) return wrong_;
    if (events == kLimit) return "it does not come to an end";
  }
  if (!table_.empty()) fail("tasks are left in the table");
  if (!processes_.all.empty()) fail("processes are left");
  for (const auto& [number, task] : tasks_) {
    const Owner& owner = owners_.at(task.owner);
    if (task.times_told > 1) fail("an end is told twice");
    if (!owner.is_lost && task.times_told == 0) fail("an end is never told");
  }
  return wrong_;
}

/// One event. False when there is nothing left to do.
bool CustodianSimulation::happen() {
  const bool any_owner = std::any_of(owners_.begin(), owners_.end(), [](const auto& entry) {
    const Owner& owner = entry.second;
    return !owner.is_lost &&
           (owner.to_start > 0 || !owner.open.empty() || !owner.orders.on_its_way.empty());
  });
  if (!any_owner && table_.empty() && processes_.all.empty()) return false;
  switch (random_.below(5)) {
    case 0: {  // an owner does something, or its link is cut
      auto entry = std::next(owners_.begin(), static_cast<long>(random_.below(owners_.size())));
      Owner& owner = entry->second;
      if (!owner.is_there) break;
      if (random_.below(40) == 0)
        cut(owner);
      else
        order(entry->first, owner);
      hear(owner);
      break;
    }
    case 1:
    case 2:  // a process does something
      if (!processes_.all.empty()) {
        auto entry = std::next(processes_.all.begin(),
                               static_cast<long>(random_.below(processes_.all.size())));
        world_moves(entry->first);
      }
      break;
    case 3: turn(); break;
    case 4:  // time passes, at most until the custodian has something to do
      if (const auto next = table_.next_look(); next && *next > now_ && random_.below(3) > 0)
        now_ = *next;
      else
        now_ += std::chrono::milliseconds(random_.below(400));
      break;
  }
  return true;
}

void CustodianSimulation::world_moves(pid_t pid) {
  auto& process = processes_.all.at(pid);
  if (process.is_zombie) return;
  if (process.is_dying) {
    if (now_ >= process.stuck_until) processes_.finish_death(pid);
    return;
  }
  switch (random_.below(8)) {
    case 0: {  // a child, perhaps in a session of its own, perhaps one that hears nothing
      if (processes_.all.size() >= 16) break;
      auto child = process;
      child.parent = pid;
      child.is_leader = false;
      child.ignores_sigterm = random_.below(3) == 0;
      processes_.add(child, /*leads_group=*/random_.below(3) == 0);
      break;
    }
    case 1:
      if (random_.below(20) == 0) process.stuck_until = now_ + 3s;
      break;
    case 2:
    case 3:  // it ends by itself
      process.is_dying = true;
      process.status = static_cast<int>(random_.below(2)) << 8;
      break;
    default: break;
  }
}

// --- owners ---

void CustodianSimulation::order(OwnerId id, Owner& owner) {
  const auto send = [&](Kind kind, const std::string& payload) {
    owner.orders.on_its_way += frame(kind, payload);
  };
  if (owner.to_start > 0 && random_.below(2) == 0) {
    --owner.to_start;
    Task task;
    task.id = owner.next_task++;
    task.argv = {"program"};
    task.tell_exit = true;
    task.grace = {std::chrono::milliseconds(500 * random_.below(3)),
                  std::chrono::milliseconds(500 * random_.below(3)),
                  std::chrono::milliseconds(500 * random_.below(3))};
    const int number = static_cast<int>(tasks_.size()) + 1;
    tasks_[number] = {.owner = id, .id = task.id};
    owner.open[task.id] = number;
    send(Kind::start, encode(task));
    return;
  }
  if (owner.open.empty()) return;
  const auto entry =
      std::next(owner.open.begin(), static_cast<long>(random_.below(owner.open.size())));
  switch (random_.below(6)) {  // told twice is told once
    case 0: send(Kind::kill, encode(entry->first)); break;
    case 1:
    case 2: send(Kind::end, encode(entry->first)); break;
    case 3: send(Kind::end, encode(TaskId{999})); break;  // one that is not there
    default: return;
  }
  tasks_.at(entry->second).is_asked_to_end = true;
}

/// In the middle of whatever is on its way.
void CustodianSimulation::cut(Owner& owner) {
  owner.is_there = false;
  auto& bytes = owner.orders.on_its_way;
  bytes.resize(random_.below(bytes.size() + 1));
}

void CustodianSimulation::hear(Owner& owner) {
  owner.news.parser.feed(piece_of(owner.news.on_its_way));
  while (const auto news = owner.news.parser.next()) {
    if (static_cast<Kind>(news->type) != Kind::ended) continue;
    const TaskEnd end = decode_task_end(news->payload);
    if (owner.open.erase(end.id) == 0) fail("the end of a task is told that nobody waits for");
  }
}

std::string CustodianSimulation::piece_of(std::string& bytes) {
  const std::size_t length = random_.below(3) == 0
                                 ? bytes.size()
                                 : static_cast<std::size_t>(random_.below(bytes.size() + 1));
  std::string piece = bytes.substr(0, length);
  bytes.erase(0, length);
  return piece;
}

// --- the custodian ---

void CustodianSimulation::turn() {
  reap();
  for (auto& [id, owner] : owners_) {
    if (owner.is_lost) continue;
    owner.orders.parser.feed(piece_of(owner.orders.on_its_way));
    while (const auto order = owner.orders.parser.next()) obey(id, owner, *order);
    if (owner.is_there || !owner.orders.on_its_way.empty()) continue;
    owner.is_lost = true;
    for (auto& [number, task] : tasks_)
      if (task.owner == id) task.must_end = true;
    table_.owner_lost(id, now_);
  }
  tell_ends();
}

void CustodianSimulation::obey(OwnerId id, Owner& owner, const Frame& order) {
  const auto mark_ending = [&](TaskId task) {
    for (auto& [number, facts] : tasks_)
      if (facts.owner == id && facts.id == task) facts.must_end = true;
  };
  switch (static_cast<Kind>(order.type)) {
    case Kind::start: return start(id, owner, decode_task(order.payload));
    case Kind::end:
      mark_ending(decode_task_id(order.payload));
      return table_.end(id, decode_task_id(order.payload), now_);
    case Kind::kill:
      mark_ending(decode_task_id(order.payload));
      return table_.kill(id, decode_task_id(order.payload), now_);
    default: fail("an order is misunderstood");
  }
}

void CustodianSimulation::start(OwnerId id, Owner& owner, const Task& task) {
  const int number = owner.open.at(task.id);
  if (random_.below(10) == 0) {  // no memory, no descriptors, no such program
    ++tasks_.at(number).times_told;
    return tell(id, frame(Kind::ended, encode(TaskEnd{task.id, 0, {}, "it cannot be started"})));
  }
  SimulatedProcesses::Process leader;
  leader.task = number;
  leader.is_leader = true;
  leader.mark = "mark" + std::to_string(number);
  leader.ignores_sigterm = random_.below(3) == 0;
  table_.add(id, task, processes_.add(leader, /*leads_group=*/true), leader.mark);
}

void CustodianSimulation::reap() {
  std::vector<pid_t> zombies;
  for (const auto& [pid, process] : processes_.all)
    if (process.is_zombie) zombies.push_back(pid);
  for (const pid_t pid : zombies) {
    const auto process = processes_.all.at(pid);
    // Whatever the leader leaves must end with it.
    if (process.is_leader) tasks_.at(process.task).must_end = true;
    if (defect_ == CustodianDefect::reaps_too_early) processes_.all.erase(pid);
    table_.about_to_reap(pid);
    processes_.all.erase(pid);
    if (const auto exit = table_.reaped(pid, process.status, now_)) {
      tell(exit->owner, frame(Kind::exited, encode(Exited{exit->id, exit->status})));
      if (defect_ == CustodianDefect::tells_with_the_exit)
        tell(exit->owner, frame(Kind::ended, encode(TaskEnd{exit->id, exit->status, {}, {}})));
    }
  }
}

void CustodianSimulation::tell_ends() {
  for (const auto& event : table_.look(now_)) {
    for (auto& [number, task] : tasks_) {
      if (task.owner != event.owner || task.id != event.id) continue;
      ++task.times_told;
      if (event.error.empty() && is_left(number))
        fail(fmt::format("the end of task {} is told while a process of it is left", number));
    }
    tell(event.owner, frame(Kind::ended, encode(TaskEnd{event.id, event.status, {}, event.error})));
  }
}

bool CustodianSimulation::is_left(int task) const {
  return std::any_of(processes_.all.begin(), processes_.all.end(),
                     [&](const auto& entry) { return entry.second.task == task; });
}

void CustodianSimulation::tell(OwnerId id, std::string_view message) {
  Owner& owner = owners_.at(id);
  if (owner.is_there && !owner.is_lost) owner.news.on_its_way += message;
}

}  // namespace kolo::test

// Processes of a machine that exists in memory: parents, groups, signals, deaths that take their
// time, and numbers that are used again as soon as the kernel would.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/task_table.h"
#include "kolo/random.h"

namespace kolo::test {

class SimulatedProcesses final : public exec::Processes {
 public:
  using Time = exec::TaskTable::Time;
  static constexpr pid_t kCustodian = 1;

  struct Process {
    pid_t parent = kCustodian;
    pid_t group = 0;
    int task = 0;  ///< the how-many-th of all tasks
    std::string mark{};
    bool is_leader = false;  ///< of its task
    bool ignores_sigterm = false;
    bool is_dying = false;   ///< it does nothing any more
    bool is_zombie = false;  ///< it waits for the custodian
    int status = 0;
    Time stuck_until{};  ///< in the kernel, which cannot be interrupted
  };

  explicit SimulatedProcesses(Random& random) : random_(random) {}

  /// Called with each process that gets a signal.
  std::function<void(pid_t, const Process&)> on_signal{};
  std::function<void(const std::string&)> on_wrong{};
  /// A defect for tests of the simulation: one who is ending is taken for a stranger.
  bool forgets_the_dying = false;

  pid_t add(Process process, bool leads_group) {
    const pid_t pid = free_number();
    if (leads_group) process.group = pid;
    all[pid] = std::move(process);
    return pid;
  }

  void signal(pid_t pid, int number) override {
    const auto found = all.find(pid);
    if (found == all.end()) return on_wrong("a signal goes to a process that does not exist");
    deliver(found->first, found->second, number);
  }
  void signal_group(pid_t leader, int number) override {
    if (!all.contains(leader)) on_wrong("a signal goes to a group whose number is free for others");
    for (auto& [pid, process] : all)
      if (process.group == leader) deliver(pid, process, number);
  }
  std::vector<pid_t> children() override {
    std::vector<pid_t> found;
    for (const auto& [pid, process] : all)
      if (process.parent == kCustodian) found.push_back(pid);
    return found;
  }
  exec::Membership membership(pid_t pid, const std::string& mark) override {
    const auto found = all.find(pid);
    if (found == all.end()) return exec::Membership::no;
    const bool is_ending = found->second.is_zombie || found->second.is_dying;
    if (is_ending) return forgets_the_dying ? exec::Membership::no : exec::Membership::unknown;
    return found->second.mark == mark ? exec::Membership::yes : exec::Membership::no;
  }

  /// The kernel is through with a process: its children have a new parent, and it is a zombie if
  /// the custodian is its parent. Others wait for their children at once.
  void finish_death(pid_t pid) {
    for (auto& [other, process] : all)
      if (process.parent == pid) process.parent = kCustodian;
    Process& process = all.at(pid);
    if (process.parent == kCustodian)
      process.is_zombie = true;
    else
      all.erase(pid);
  }

  std::map<pid_t, Process> all;

 private:
  void deliver(pid_t pid, Process& process, int number) {
    if (process.is_zombie) return;
    if (on_signal) on_signal(pid, process);
    if (process.is_dying || (number == SIGTERM && process.ignores_sigterm)) return;
    process.is_dying = true;
    process.status = number;
  }
  /// Few numbers, so that they come back soon. One that is the number of a group is not free.
  pid_t free_number() {
    constexpr pid_t kFirst = 10, kNumbers = 24;
    const auto from = static_cast<pid_t>(random_.below(kNumbers));
    for (pid_t i = 0; i < 100 * kNumbers; ++i) {
      const pid_t pid = kFirst + (i < kNumbers ? (from + i) % kNumbers : i);
      const bool is_used =
          all.contains(pid) || std::any_of(all.begin(), all.end(),
                                           [&](const auto& it) { return it.second.group == pid; });
      if (!is_used) return pid;
    }
    return kFirst + 100 * kNumbers;
  }

  Random& random_;
};

}  // namespace kolo::test

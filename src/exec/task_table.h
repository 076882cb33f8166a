// The tasks that a custodian has, and what must be done about their ends. It decides; others act:
// the system is an interface and the time is passed in, so that every case can be tested.
//
// A task lives in two stages:
//   running   its first process, the leader of its process group, lives;
//   ending    the leader is gone. What it left in its group, and what left the group and became a
//             child of the custodian (known by the task's mark), is told to end, then killed.
// A task has ended when nothing of it is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/ledger.h"
#include "exec/process_tree.h"
#include "exec/task.h"

namespace kolo::exec {

/// What the table needs of the system.
class Processes {
 public:
  virtual ~Processes() = default;
  virtual void signal(pid_t process, int signal) = 0;
  virtual void signal_group(pid_t leader, int signal) = 0;
  /// The custodian's own children, leaders and adopted ones.
  virtual std::vector<pid_t> children() = 0;
  virtual Membership membership(pid_t process, const std::string& mark) = 0;
};

class TaskTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Event {
    OwnerId owner = 0;
    TaskId id = 0;
    int status = 0;
    std::string error{};
  };

  explicit TaskTable(Processes& processes) : processes_(processes) {}

  void add(OwnerId owner, const Task& task, pid_t leader, std::string mark);
  [[nodiscard]] bool contains(OwnerId owner, TaskId id) const;
  [[nodiscard]] bool empty() const noexcept { return running_.empty() && ending_.empty(); }
  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }

  /// SIGTERM now, SIGKILL after the grace time. Asking again changes nothing.
  void end(OwnerId owner, TaskId id, Time now);
  void kill(OwnerId owner, TaskId id, Time now);
  /// Ends all tasks of this owner, and no others.
  void owner_lost(OwnerId owner, Time now);

  /// To be called while `process` has ended but is not yet waited for: until then neither its
  /// number nor its group's can be anybody else's.
  void about_to_reap(pid_t process);
  /// `process` was waited for. An event if it was the leader of a task.
  std::optional<Event> reaped(pid_t process, int status, Time now);

  /// Does what is due, and gives the tasks of which nothing is left.
  std::vector<Event> look(Time now);
  /// When look() has something to do even if nothing happens.
  [[nodiscard]] std::optional<Time> next_look() const;

 private:
  struct Running {
    OwnerId owner = 0;
    TaskId id = 0;
    std::string mark;
    Grace grace;
    std::optional<Time> kill_at;
  };
  struct Ending {
    OwnerId owner = 0;
    TaskId id = 0;
    std::string mark;
    int status = 0;
    Time kill_at, give_up_at;
    std::set<pid_t> left;  // children of this process that are, or may be, of the task
  };

  void end_in(std::pair<const pid_t, Running>& entry, std::chrono::milliseconds grace, Time now);
  void find_left(Ending& ending, const std::vector<pid_t>& orphans, Time now);

  Processes& processes_;
  std::map<pid_t, Running> running_;  // by leader
  std::map<std::pair<OwnerId, TaskId>, pid_t> leaders_;
  std::list<Ending> ending_;
  std::optional<Time> next_kill_;  // the earliest of running_
  Time looked_{};
};

}  // namespace kolo::exec

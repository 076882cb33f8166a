// A custodian and its owners in memory, with the real decision code (TaskTable) and the real
// protocol, under a schedule that follows from its number alone: links are cut in the middle of a
// message, bytes come late and in pieces, programs cannot be started, ignore requests, fork while
// they are being killed, leave their group, or hang in the kernel; numbers of processes are used
// again at once.
//
// Whatever happens: the end of a task is told once, when nothing of it is left; nobody is signalled
// who need not end; what belongs to a lost owner ends; and it all comes to an end.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>

#include "base/frames.h"
#include "exec/protocol.h"
#include "exec/task_table.h"
#include "kolo/random.h"
#include "unit/exec/simulated_processes.h"

namespace kolo::test {

/// Defects that the simulation must find.
enum class CustodianDefect { none, reaps_too_early, forgets_the_dying, tells_with_the_exit };

class CustodianSimulation {
 public:
  explicit CustodianSimulation(std::uint64_t number,
                               CustodianDefect defect = CustodianDefect::none);

  /// Plays it to its end. Returns what went wrong, "" for nothing.
  std::string run();

 private:
  using Time = exec::TaskTable::Time;

  /// One direction of a link: bytes on their way, and who puts them together again.
  struct Stream {
    std::string on_its_way{};
    FrameParser parser{1U << 20};
  };
  struct TaskFacts {
    exec::OwnerId owner = 0;
    exec::TaskId id = 0;
    bool is_asked_to_end = false;  // what the owner has ordered
    bool must_end = false;         // what the custodian knows: its processes may be signalled
    int times_told = 0;
  };
  struct Owner {
    Stream orders{}, news{};
    bool is_there = true;  // false: its link is cut
    bool is_lost = false;  // and the custodian has seen it
    int to_start = 0;
    exec::TaskId next_task = 1;
    std::map<exec::TaskId, int> open{};  // what it waits for: the number of each task
  };

  bool happen();
  void world_moves(pid_t pid);
  void order(exec::OwnerId id, Owner& owner);
  void cut(Owner& owner);
  /// One turn of the custodian's loop.
  void turn();
  void obey(exec::OwnerId id, Owner& owner, const Frame& order);
  void start(exec::OwnerId id, Owner& owner, const exec::Task& task);
  void reap();
  void tell(exec::OwnerId id, std::string_view message);
  void tell_ends();
  void hear(Owner& owner);
  std::string piece_of(std::string& bytes);
  [[nodiscard]] bool is_left(int task) const;
  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  Random random_;
  const CustodianDefect defect_;
  Time now_{std::chrono::hours(1)};
  SimulatedProcesses processes_{random_};
  exec::TaskTable table_{processes_};
  std::map<exec::OwnerId, Owner> owners_;
  std::map<int, TaskFacts> tasks_;
  std::string wrong_;
};

}  // namespace kolo::test

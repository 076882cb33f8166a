// The decisions of a custodian, in memory: no processes, and a clock that the test turns.
#include "exec/task_table.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Processes that exist as entries of a map, and what was done to them.
class FakeProcesses : public Processes {
 public:
  void signal(pid_t process, int signal) override { signals.emplace_back(process, signal); }
  void signal_group(pid_t leader, int signal) override { signals.emplace_back(-leader, signal); }
  std::vector<pid_t> children() override { return living; }
  Membership membership(pid_t process, const std::string& mark) override {
    const auto found = marks.find(process);
    if (found == marks.end()) return Membership::unknown;
    return found->second == mark ? Membership::yes : Membership::no;
  }

  void orphan(pid_t process, const std::string& mark) {
    living.push_back(process);
    marks[process] = mark;
  }
  void gone(pid_t process) { std::erase(living, process); }

  std::vector<pid_t> living;
  std::map<pid_t, std::string> marks;
  std::vector<std::pair<pid_t, int>> signals;
};

class TaskTableTest : public ::testing::Test {
 protected:
  void add(OwnerId owner, TaskId id, pid_t leader, Grace grace = {5s, 0ms, 2s}) {
    Task task;
    task.id = id;
    task.grace = grace;
    table_.add(owner, task, leader, "mark" + std::to_string(leader));
    system_.living.push_back(leader);
  }
  std::optional<TaskTable::Event> reap(pid_t process, int status = 0) {
    table_.about_to_reap(process);
    system_.gone(process);
    return table_.reaped(process, status, now_);
  }
  std::vector<TaskTable::Event> look_after(std::chrono::milliseconds pause) {
    now_ += pause;
    return table_.look(now_);
  }
  std::vector<std::pair<pid_t, int>> take_signals() { return std::exchange(system_.signals, {}); }

  TaskTable::Time now_{1000s};
  FakeProcesses system_;
  TaskTable table_{system_};
};

using Signal = std::pair<pid_t, int>;

TEST_F(TaskTableTest, ATaskThatLeavesNothingEndsAtOnce) {
  add(1, 7, 100);
  EXPECT_FALSE(table_.next_look());
  const auto exit = reap(100, 256);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->id, 7U);
  EXPECT_EQ(exit->status, 256);
  const auto ends = look_after(0ms);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].owner, 1U);
  EXPECT_EQ(ends[0].id, 7U);
  EXPECT_EQ(ends[0].status, 256);
  EXPECT_EQ(ends[0].error, "");
  EXPECT_TRUE(table_.empty());
}

TEST_F(TaskTableTest, SigtermThenSigkillAfterTheGraceTime) {
  add(1, 7, 100);
  table_.end(1, 7, now_);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGTERM)));
  table_.end(1, 7, now_);  // asking again changes nothing
  EXPECT_THAT(look_after(4999ms), IsEmpty());
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_EQ(*table_.next_look(), now_ + 1ms);
  look_after(1ms);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGKILL)));
  look_after(5s);  // should it not go: again
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGKILL)));
}

TEST_F(TaskTableTest, KillingDoesNotWait) {
  add(1, 7, 100);
  table_.end(1, 7, now_);
  take_signals();
  table_.kill(1, 7, now_);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGKILL)));
}

TEST_F(TaskTableTest, ALostOwnerCostsItsOwnTasksOnly) {
  add(1, 7, 100);
  add(2, 7, 200);
  table_.owner_lost(1, now_);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGTERM)));
  look_after(2s);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGKILL)));
}

TEST_F(TaskTableTest, WhatIsLeftBehindIsKilledBeforeTheEndIsTold) {
  add(1, 7, 100);
  system_.orphan(101, "mark100");
  system_.orphan(102, "mark200");  // somebody else's
  reap(100);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGKILL)));
  EXPECT_THAT(look_after(0ms), IsEmpty());
  EXPECT_THAT(take_signals(), ElementsAre(Signal(101, SIGKILL)));
  EXPECT_TRUE(table_.contains(1, 7));
  reap(101);
  EXPECT_THAT(look_after(0ms), SizeIs(1));
  EXPECT_FALSE(table_.contains(1, 7));
}

TEST_F(TaskTableTest, WhatIsLeftBehindMayHaveTime) {
  add(1, 7, 100, {5s, 3s, 2s});
  system_.orphan(101, "mark100");
  reap(100);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(-100, SIGTERM)));
  look_after(0ms);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(101, SIGTERM)));
  look_after(2999ms);
  EXPECT_THAT(take_signals(), IsEmpty());
  look_after(1ms);
  EXPECT_THAT(take_signals(), ElementsAre(Signal(101, SIGKILL)));
}

TEST_F(TaskTableTest, WhatIsBornWhileItsParentDiesIsFoundToo) {
  add(1, 7, 100);
  system_.orphan(101, "mark100");
  reap(100);
  look_after(0ms);
  system_.orphan(103, "mark100");  // 101 forked before it was killed
  reap(101);
  take_signals();
  EXPECT_THAT(look_after(0ms), IsEmpty());
  EXPECT_THAT(take_signals(), ElementsAre(Signal(103, SIGKILL)));
  reap(103);
  EXPECT_THAT(look_after(0ms), SizeIs(1));
}

TEST_F(TaskTableTest, WhoIsEndingAlreadyIsWaitedForButNotTouched) {
  add(1, 7, 100);
  system_.living.push_back(104);  // of unknown origin
  reap(100);
  take_signals();
  EXPECT_THAT(look_after(0ms), IsEmpty());
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_EQ(*table_.next_look(), now_ + 100ms);
  reap(104);
  EXPECT_THAT(look_after(100ms), SizeIs(1));
}

TEST_F(TaskTableTest, WhatCannotBeKilledIsSaid) {
  add(1, 7, 100);
  system_.orphan(101, "mark100");
  reap(100);
  EXPECT_THAT(look_after(9s), IsEmpty());
  const auto ends = look_after(1s);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].error, "process 101 of it cannot be killed");
}

TEST_F(TaskTableTest, OrdersForTasksThatAreNotThereDoNothing) {
  add(1, 7, 100);
  table_.end(2, 7, now_);
  table_.kill(1, 8, now_);
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_FALSE(reap(4711));
}

}  // namespace
}  // namespace kolo::exec

// What a pilot decides: starts, ends, limits, hooks, kills, packing.
#include "unit/jobs/pilot_fixture.h"

namespace kolo::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(PilotTest, RunsAJobToItsEnd) {
  begin();
  const JobId id = add([](Job& job) { job.args = "-x 'a b'"; });
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  EXPECT_EQ(tasks_.started[0].node, 0);
  EXPECT_THAT(tasks_.started[0].task.argv, ElementsAre("/bin/app", "-x", "a b"));
  EXPECT_EQ(state(id), JobState::running);
  EXPECT_EQ(last_reason(id, JobState::running), "on n0");
  EXPECT_EQ(jobs_.job(id).launcher, pilot_->launcher_id());
  end_task(0, exited(0));
  EXPECT_EQ(path_of(id), kWholePath);
  EXPECT_EQ(jobs_.job(id).return_code, 0);
  EXPECT_EQ(jobs_.job(id).launcher, 0);
  EXPECT_EQ(summary_.finished, 1);
  EXPECT_EQ(summary_.runs, 1);
}

TEST_F(PilotTest, StartsAChildWhenItsParentHasFinished) {
  begin();
  const JobId parent = add(), child = add([&](Job&job) { job.parents = {parent}; });
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  end_task(0, exited(0));
  ASSERT_THAT(tasks_.started, SizeIs(2));
  end_task(1, exited(0));
  EXPECT_EQ(state(child), JobState::job_finished);
}

TEST_F(PilotTest, AFailedRunIsTriedAgainAsOftenAsItMay) {
  begin();
  const JobId id = add([](Job& job) { job.max_retries = 1; });
  work();
  end_task(0, exited(3), "oh no\n");
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_EQ(last_reason(id, JobState::run_error), "exited with status 3; its output ends: oh no");
  end_task(1, std::nullopt, "there is no program /bin/app");
  EXPECT_EQ(state(id), JobState::failed);
  EXPECT_EQ(last_reason(id, JobState::run_error), "there is no program /bin/app");
  EXPECT_EQ(jobs_.job(id).retries, 1);
  EXPECT_EQ(summary_.failed, 1);
  EXPECT_THAT(tasks_.started, SizeIs(2));
}

TEST_F(PilotTest, EndsARunAtTheLimitOfItsJob) {
  begin();
  const JobId id = add([](Job& job) { job.time_limit_seconds = 30; });
  work();
  clock_.advance(29s);
  pilot_->turn();
  EXPECT_THAT(tasks_.ended, IsEmpty());
  EXPECT_LE(pilot_->next_turn() - clock_.now(), 1s);
  clock_.advance(1s);
  pilot_->turn();
  EXPECT_THAT(tasks_.ended, ElementsAre(tasks_.started.at(0).task.id));
  EXPECT_EQ(state(id), JobState::running);
  end_task(0, kKilledBySigterm);
  EXPECT_EQ(last_reason(id, JobState::run_timeout), "it ran longer than its limit of 30 s");
  EXPECT_EQ(state(id), JobState::failed);
}

TEST_F(PilotTest, GivesJobsBackWhenItsTimeIsOver) {
  begin();
  const JobId running = add(), waiting = add();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  clock_.advance(24h);
  pilot_->turn();
  EXPECT_THAT(tasks_.ended, SizeIs(1));
  EXPECT_FALSE(pilot_->is_over());
  end_task(0, kKilledBySigterm);
  EXPECT_EQ(last_reason(running, JobState::run_timeout), "the launcher's time is over");
  EXPECT_EQ(state(running), JobState::restart_ready);
  EXPECT_EQ(state(waiting), JobState::preprocessed);
  for (const JobId id : {running, waiting}) EXPECT_EQ(jobs_.job(id).launcher, 0);
  EXPECT_TRUE(pilot_->is_over());
}

TEST_F(PilotTest, ATaskThatABatchSystemEndedBeforeTheLauncherRunsAgain) {
  begin();
  const JobId id = add();
  work();
  pilot_->task_ended(tasks_.started.at(0).task.id, kKilledBySigterm, "");
  pilot_->turn();
  pilot_->stop("the launcher was told to end");
  work();
  EXPECT_EQ(last_reason(id, JobState::run_timeout), "the launcher was told to end");
  EXPECT_EQ(state(id), JobState::restart_ready);
  EXPECT_TRUE(pilot_->is_over());
}

TEST_F(PilotTest, ATaskThatSomebodyTerminatedHasFailed) {
  begin();
  const JobId id = add();
  work();
  pilot_->task_ended(tasks_.started.at(0).task.id, kKilledBySigterm, "");
  pilot_->turn();
  EXPECT_LE(pilot_->next_turn() - clock_.now(), 200ms);
  clock_.advance(200ms);
  work();
  EXPECT_EQ(state(id), JobState::failed);
  EXPECT_THAT(last_reason(id, JobState::run_error), HasSubstr("signal 15"));
}

TEST_F(PilotTest, AJobKilledBeforeItsStartWasWrittenIsEnded) {
  begin();
  const JobId id = add();
  database_->refused_commit = 2;  // the first takes the job
  pilot_->turn();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  jobs_.kill({id}, false);
  pilot_->notified();
  clock_.advance(50ms);
  work();
  EXPECT_THAT(tasks_.ended, ElementsAre(tasks_.started[0].task.id));
  end_task(0, kKilledBySigterm);
  EXPECT_EQ(state(id), JobState::user_killed);
  EXPECT_EQ(jobs_.job(id).launcher, 0);
  EXPECT_EQ(path_of(id), "CREATED READY USER_KILLED");
  EXPECT_EQ(summary_.failed, 0);
}

TEST_F(PilotTest, AJobKilledWhileItWaitsIsNotStarted) {
  begin();
  add();
  const JobId waiting = add();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  jobs_.kill({waiting}, false);
  pilot_->notified();
  work();
  end_task(0, exited(0));
  EXPECT_THAT(tasks_.started, SizeIs(1));
  EXPECT_EQ(jobs_.job(waiting).launcher, 0);
}

TEST_F(PilotTest, PacksJobsOnANodeAsTheyPermit) {
  begin();
  for (int i = 0; i < 3; ++i) add([](Job& job) { job.node_packing_count = 2; });
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  end_task(0, exited(0));
  ASSERT_THAT(tasks_.started, SizeIs(3));
  EXPECT_EQ(tasks_.started[2].node, 0);
}

TEST_F(PilotTest, GivesEachWholeNodeToOneJob) {
  begin(2);
  for (int i = 0; i < 3; ++i) add();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_NE(tasks_.started[0].node, tasks_.started[1].node);
}

TEST_F(PilotTest, ARunOfSeveralRanksIsStartedByARunnerHere) {
  begin(2);
  add([](Job& job) { job.num_nodes = 2; });
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  EXPECT_EQ(tasks_.started[0].node, kOwnMachine);
}

TEST_F(PilotTest, HooksStartAtOnceAndInOrder) {
  jobs_.set_application(
      {.name = "app", .executable = "/bin/app", .preprocess = "pre", .postprocess = "post"});
  begin();
  const JobId id = add();
  pilot_->turn();
  EXPECT_LE(pilot_->next_turn(), clock_.now());  // nothing is to be waited for
  pilot_->turn();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  EXPECT_THAT(tasks_.started[0].task.argv, ElementsAre("pre"));
  EXPECT_EQ(tasks_.started[0].node, kOwnMachine);
  EXPECT_EQ(state(id), JobState::staged_in);  // the script may look at its job
  for (std::size_t i = 0; i < 3; ++i) end_task(i, exited(0));
  EXPECT_THAT(tasks_.started[2].task.argv, ElementsAre("post"));
  EXPECT_EQ(path_of(id), kWholePath);
}

TEST_F(PilotTest, AHookThatDoesNotEndFailsItsJob) {
  jobs_.set_application({.name = "app", .executable = "/bin/app", .preprocess = "pre"});
  begin();
  const JobId id = add();
  work();
  clock_.advance(options_.hook_limit);
  work();
  ASSERT_THAT(tasks_.ended, SizeIs(1));
  end_task(0, kKilledBySigterm);
  EXPECT_EQ(last_reason(id, JobState::failed), "preprocess did not end within 300 s");
}

TEST_F(PilotTest, AHandlerDecidesAfterAnError) {
  jobs_.set_application({.name = "app", .executable = "/bin/app", .postprocess = "post"});
  begin();
  const JobId id = add([](Job& job) { job.post_error_handler = true; });
  work();
  end_task(0, exited(1));
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_THAT(tasks_.started[1].task.environment, testing::Contains("KOLO_JOB_ERROR=TRUE"));
  jobs_.modify(id, "state", "RESTART_READY");
  end_task(1, exited(0));
  ASSERT_THAT(tasks_.started, SizeIs(3));
  end_task(2, exited(0));
  // The next handler says nothing.
  ASSERT_THAT(tasks_.started, SizeIs(4));
  end_task(3, exited(0));
  EXPECT_EQ(state(id), JobState::job_finished);
}

TEST_F(PilotTest, LeavesAfterAnIdleTimeUnlessOthersWork) {
  begin();
  work();
  EXPECT_FALSE(pilot_->is_over());
  clock_.advance(10s);
  pilot_->turn();
  EXPECT_TRUE(pilot_->is_over());
  auto connection = JobDatabase::open(scratch_.path() / "db");
  body_of(connection).clock = body_of(connection).lease_clock = &clock_;
  Leases other(connection, 60, "{}");
  add();
  ASSERT_THAT(other.take({.single = 1, .cores = 4}), SizeIs(1));
  EXPECT_FALSE(pilot_->is_over());
}

TEST_F(PilotTest, GivesItsReserveBackWhenAnotherLauncherCouldHaveIt) {
  begin(4);
  for (int i = 0; i < 30; ++i) add();
  work();
  // Jobs that end together use up the reserve, and it grows.
  for (std::size_t i = 0; i < 4; ++i)
    pilot_->task_ended(tasks_.started.at(i).task.id, exited(0), "");
  work();
  auto connection = JobDatabase::open(scratch_.path() / "db");
  body_of(connection).clock = body_of(connection).lease_clock = &clock_;
  Leases other(connection, 60, "{}");
  while (!other.take({.single = 10, .cores = 4}).empty()) {
  }
  clock_.advance(30s);
  work();
  EXPECT_THAT(other.take({.single = 10, .cores = 4}), testing::Not(IsEmpty()));
}

// A search is a job that takes a whole node, and waits for jobs that it adds.
TEST_F(PilotTest, AJobThatYieldsGivesItsPlaceToTheJobsThatItWaitsFor) {
  begin();
  const JobId search = add();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  const JobId evaluation = add();
  pilot_->notified();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1)) << "the node is the first job's";
  jobs_.yield_place(search);
  pilot_->notified();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_EQ(state(evaluation), JobState::running);
  // The place is free once, not twice.
  add();
  pilot_->notified();
  work();
  EXPECT_THAT(tasks_.started, SizeIs(2));
  end_task(1, exited(0));
  EXPECT_THAT(tasks_.started, SizeIs(3));
  end_task(0, exited(0));
  EXPECT_EQ(state(search), JobState::job_finished);
}

TEST_F(PilotTest, AJobThatYieldsHasItsNodeToItselfWhileOthersAreFree) {
  begin(2);
  const JobId search = add();
  work();
  jobs_.yield_place(search);
  add();
  pilot_->notified();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_NE(tasks_.started[0].node, tasks_.started[1].node);
}

}  // namespace
}  // namespace kolo::jobs

// What a pilot does when something is lost: its lease, a node, an answer of the database.
#include "unit/jobs/pilot_fixture.h"

namespace kolo::jobs {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST_F(PilotTest, ALauncherThatWasSilentHasLostItsJobs) {
  begin();
  const JobId id = add();
  work();
  auto connection = JobDatabase::open(scratch_.path() / "db");
  body_of(connection).clock = body_of(connection).lease_clock = &clock_;
  Leases heir(connection, options_.lease_seconds, "{}");
  EXPECT_EQ(heir.free_lost(), 0);
  clock_.advance(61s);
  heir.write({});
  EXPECT_EQ(heir.free_lost(), 1);
  EXPECT_THAT(heir.take({.single = 1, .cores = 4}), SizeIs(1));
  pilot_->task_ended(tasks_.started.at(0).task.id, exited(0), "");
  try {
    work();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  }
  EXPECT_EQ(state(id), JobState::restart_ready);
  EXPECT_EQ(jobs_.job(id).launcher, heir.id());
}

TEST_F(PilotTest, KeepsItsLeaseWhileNothingHappens) {
  begin();
  add();
  work();
  auto connection = JobDatabase::open(scratch_.path() / "db");
  body_of(connection).clock = body_of(connection).lease_clock = &clock_;
  Leases other(connection, 3600, "{}");
  for (int i = 0; i < 20; ++i) {
    const auto wait = pilot_->next_turn() - clock_.now();
    ASSERT_GT(wait, 0ms);
    clock_.advance(wait);
    pilot_->turn();
    EXPECT_EQ(other.free_lost(), 0);
  }
}

TEST_F(PilotTest, WhatRanOnALostNodeStartsOnAnother) {
  begin(2);
  const JobId id = add();
  work();
  const int first = tasks_.started.at(0).node;
  pilot_->node_lost(first, "node n0 was lost: no power");
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  EXPECT_NE(tasks_.started[1].node, first);
  EXPECT_EQ(last_reason(id, JobState::restart_ready), "node n0 was lost: no power");
  // What may still be said of the first task is not listened to.
  end_task(0, exited(1));
  EXPECT_EQ(state(id), JobState::running);
  EXPECT_THROW(pilot_->node_lost(tasks_.started[1].node, "no power"), Error);
  EXPECT_EQ(state(id), JobState::restart_ready);
}

TEST_F(PilotTest, AHookOfALostMachineRunsAgain) {
  jobs_.set_application({.name = "app", .executable = "/bin/app", .preprocess = "pre"});
  begin();
  const JobId id = add();
  work();
  pilot_->node_lost(kOwnMachine, "it was lost");
  work();
  EXPECT_EQ(jobs_.job(id).launcher, 0);
  pilot_->notified();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  end_task(1, exited(0));
  end_task(2, exited(0));
  EXPECT_EQ(path_of(id), kWholePath);
}

TEST_F(PilotTest, AWriteWhoseAnswerWasLostIsNotMadeTwice) {
  begin();
  const JobId id = add();
  work();
  pilot_->task_ended(tasks_.started.at(0).task.id, exited(0), "");
  database_->lost_commit = 1;
  pilot_->turn();
  EXPECT_EQ(database_->lost_commit, 0);  // it was made
  EXPECT_EQ(state(id), JobState::job_finished);
  clock_.advance(50ms);
  work();
  EXPECT_EQ(path_of(id), kWholePath);
  pilot_->stop("that is enough");
  EXPECT_TRUE(pilot_->is_over());  // it holds nothing any more
}

TEST_F(PilotTest, WhatHappensAfterAWriteInDoubtIsWrittenAfterIt) {
  begin();
  const JobId id = add();
  database_->lost_commit = 2;  // the first takes the job
  pilot_->turn();
  ASSERT_EQ(database_->lost_commit, 0);
  EXPECT_EQ(state(id), JobState::running);
  pilot_->task_ended(tasks_.started.at(0).task.id, exited(0), "");
  clock_.advance(50ms);
  work();
  EXPECT_EQ(path_of(id), kWholePath);
}

TEST_F(PilotTest, JobsWhoseTakingWasNotAnsweredAreFoundAndStartedOnce) {
  begin();
  work();
  const JobId id = add();
  pilot_->notified();
  database_->lost_commit = 1;
  pilot_->turn();
  ASSERT_EQ(database_->lost_commit, 0);
  EXPECT_EQ(jobs_.job(id).launcher, pilot_->launcher_id());
  EXPECT_THAT(tasks_.started, SizeIs(0));
  clock_.advance(50ms);
  work();
  ASSERT_THAT(tasks_.started, SizeIs(1));
  end_task(0, exited(0));
  EXPECT_EQ(path_of(id), kWholePath);
}

TEST_F(PilotTest, TasksGoOnWhileTheDatabaseDoesNotAnswer) {
  begin(2);
  const JobId a = add(), b = add();
  work();
  ASSERT_THAT(tasks_.started, SizeIs(2));
  database_->down = true;
  end_task(0, exited(0));
  end_task(1, exited(2));
  for (int i = 0; i < 100; ++i) {  // longer than its lease
    clock_.advance(2s);
    pilot_->turn();
    EXPECT_LE(pilot_->next_turn() - clock_.now(), 2s);
  }
  EXPECT_FALSE(pilot_->is_over());
  database_->down = false;
  clock_.advance(2s);
  work();
  EXPECT_EQ(path_of(a), kWholePath);
  EXPECT_EQ(state(b), JobState::failed);
}

TEST_F(PilotTest, GivesUpADatabaseThatDoesNotAnswerAtItsEnd) {
  begin();
  add();
  work();
  database_->down = true;
  pilot_->stop("that is enough");
  end_task(0, kKilledBySigterm);
  EXPECT_FALSE(pilot_->is_over());
  EXPECT_LE(pilot_->next_turn() - clock_.now(), 2s);
  clock_.advance(5s);
  const Error error = error_of_turn();
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("that is enough, and the job database has not answered"));
  EXPECT_THAT(error.message(), HasSubstr("the server went away"));
  EXPECT_THAT(error.message(), HasSubstr("1 job could not be written, and will be done again"));
}

TEST_F(PilotTest, ADatabaseThatNeverComesBackIsGivenUp) {
  options_.persistent = true;
  options_.database_patience = 100s;
  begin();
  add();
  work();
  database_->down = true;
  for (int i = 0; i < 100; ++i) {  // as long as the task runs
    clock_.advance(2s);
    pilot_->turn();
  }
  end_task(0, exited(0));
  for (int i = 0; i < 49; ++i) {
    clock_.advance(2s);
    pilot_->turn();
  }
  clock_.advance(4s);
  const Error error = error_of_turn();
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("has not answered for 100 s: the server went away"));
}

TEST_F(PilotTest, AnAnswerStartsThePatienceAnew) {
  options_.persistent = true;
  options_.database_patience = 100s;
  begin();
  work();
  for (int round = 0; round < 3; ++round) {
    database_->down = true;
    for (int i = 0; i < 45; ++i) {
      clock_.advance(2s);
      pilot_->turn();
    }
    database_->down = false;
    clock_.advance(30s);
    work();
  }
  EXPECT_FALSE(pilot_->is_over());
}

TEST_F(PilotTest, EndsWhenTheFolderOfItsDatabaseIsGone) {
  options_.persistent = true;
  begin();
  work();
  std::filesystem::remove_all(jobs_.folder());
  clock_.advance(clock_duration(options_.lease_seconds));
  const Error error = error_of_turn();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.message(), HasSubstr(jobs_.folder().string() + ", is gone"));
}

TEST_F(PilotTest, SignsOffWithoutADatabaseToo) {
  begin();
  work();
  pilot_->stop("that is enough");
  database_->down = true;
  ASSERT_TRUE(pilot_->is_over());
  pilot_->finish();
}

}  // namespace
}  // namespace kolo::jobs

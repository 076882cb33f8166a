// Taking jobs, writing what became of them, and losing them.
#include "jobs/database/leases.h"

#include <thread>

#include "conformance/jobs/jobs_fixture.h"
#include "jobs/database/body.h"
#include "support/given_clock.h"

namespace kolo::test {
namespace {

using jobs::Changes;
using jobs::Job;
using jobs::JobDatabase;
using jobs::JobId;
using jobs::JobState;
using jobs::Leases;
using jobs::Step;
using jobs::Taken;
using testing::HasSubstr;
using namespace std::chrono_literals;

class LeasesTest : public JobsTest {
 protected:
  static constexpr double kLong = 60;
  static jobs::Wanted wanted() { return {.single = 100, .several = 100, .nodes = 4, .cores = 8}; }

  static const std::vector<Step>& to_the_end() {
    static const std::vector<Step> steps = {
        {JobState::staged_in, 1, ""},     {JobState::preprocessed, 2, ""},
        {JobState::running, 3, "on n1"},  {JobState::run_done, 4, ""},
        {JobState::postprocessed, 5, ""}, {JobState::job_finished, 6, ""}};
    return steps;
  }
  static Changes::Chain finish(const Taken& taken) {
    return {.id = taken.job.id,
            .from = JobState::ready,
            .steps = to_the_end(),
            .hold = taken.hold,
            .release = true,
            .return_code = 0};
  }
};
INSTANTIATE_TEST_SUITE_P(All, LeasesTest, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param; });

TEST_P(LeasesTest, FinishesAJobAndFreesItsChild) {
  const JobId a = add("a"), child = add("child", {a});
  Leases leases(*jobs_, kLong, "{}");
  const auto taken = leases.take(wanted());
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].job.id, a);
  EXPECT_TRUE(leases.take(wanted()).empty());
  // A server may have gone away before it answered: what was taken can be asked for.
  const auto again = leases.taken();
  ASSERT_EQ(again.size(), taken.size());
  for (const auto& one : again) {
    const auto same = std::find_if(taken.begin(), taken.end(),
                                   [&](const auto& other) { return other.job.id == one.job.id; });
    ASSERT_NE(same, taken.end());
    EXPECT_EQ(one.hold.launcher, same->hold.launcher);
    EXPECT_EQ(one.hold.attempt, same->hold.attempt);
  }
  EXPECT_TRUE(Leases(*jobs_, kLong, "{}").taken().empty());
  EXPECT_THAT(leases.write({finish(taken[0])}), testing::ElementsAre(true));
  EXPECT_EQ(path_of(a),
            "CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_DONE POSTPROCESSED JOB_FINISHED");
  EXPECT_EQ(state(child), JobState::ready);
  EXPECT_EQ(jobs_->job(a).return_code, 0);
  EXPECT_EQ(jobs_->job(a).launcher, 0);
  // Repeated because the answer was lost, say: nothing happens twice.
  EXPECT_THAT(leases.write({finish(taken[0])}), testing::ElementsAre(true));
  EXPECT_EQ(jobs_->history(a).size(), 8U);
  const auto next = leases.take(wanted());
  ASSERT_EQ(next.size(), 1U);
  EXPECT_THAT(next[0].job.parents, testing::ElementsAre(a));
}

TEST_P(LeasesTest, RefusesAnIllegalChain) {
  add("a");
  Leases leases(*jobs_, kLong, "{}");
  const auto taken = leases.take(wanted());
  auto chain = finish(taken[0]);
  chain.steps = chain.steps.subspan(2);
  EXPECT_THROW(leases.write({chain}), Error);
  EXPECT_EQ(state(taken[0].job.id), JobState::ready);
}

TEST_P(LeasesTest, TakesWhatFitsLargestAndLongestFirst) {
  const auto create = [this](auto&& change) {
    Job job = plain_job("x");
    change(job);
    return jobs_->create(job);
  };
  const JobId small = create([](Job& job) { job.wall_time_minutes = 5; });
  const JobId longer = create([](Job& job) { job.wall_time_minutes = 50; });
  const JobId wide = create([](Job& job) { job.num_nodes = 4; });
  create([](Job& job) { job.num_nodes = 5; });
  create([](Job& job) { job.threads_per_rank = 9; });
  create([](Job& job) { job.gpus_per_rank = 1; });
  Leases leases(*jobs_, kLong, "{}");
  std::vector<JobId> ids;
  for (const auto& taken : leases.take(wanted())) ids.push_back(taken.job.id);
  EXPECT_THAT(ids, testing::ElementsAre(wide, longer, small));
}

TEST_P(LeasesTest, TakesOnlyTheFilteredWorkflow) {
  add("a");
  jobs_->create(plain_job("b", "other"));
  Leases leases(*jobs_, kLong, "{}");
  auto only = wanted();
  only.workflow = "the";  // a part of the name
  EXPECT_TRUE(leases.take(only).empty());
  only.workflow = "o?her*";
  const auto taken = leases.take(only);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].job.name, "b");
  EXPECT_FALSE(leases.others_work("other"));
  auto elsewhere = JobDatabase::open(folder());
  Leases idle(elsewhere, kLong, "{}");
  EXPECT_TRUE(idle.others_work("oth*"));
  EXPECT_FALSE(idle.others_work("TEST"));
}

TEST_P(LeasesTest, ALostLauncherCannotFinishItsJob) {
  const JobId a = add("a");
  auto other_connection = JobDatabase::open(folder());
  GivenClock clock;
  for (auto* connection : {jobs_.get(), &other_connection})
    body_of(*connection).lease_clock = &clock;
  Leases dead(*jobs_, kLong, "{}"), heir(other_connection, kLong, "{}");
  const auto first = dead.take(wanted());
  const std::vector<Step> run(to_the_end().begin(), to_the_end().begin() + 3);
  dead.write({{.id = a, .from = JobState::ready, .steps = run, .hold = first[0].hold}});
  EXPECT_EQ(heir.free_lost(), 0);
  clock.advance(60s);
  EXPECT_EQ(heir.free_lost(), 0);
  clock.advance(1s);
  heir.write({});  // it is heard of
  EXPECT_EQ(heir.free_lost(), 1);
  EXPECT_EQ(state(a), JobState::restart_ready);
  EXPECT_THAT(jobs_->history(a).back().reason, HasSubstr("not heard of"));
  const auto second = heir.take(wanted());
  ASSERT_EQ(second.size(), 1U);
  // The dead one comes back to life.
  const std::vector<Step> done = {{JobState::run_done, 9, "late"}};
  const Changes::Chain late{
      .id = a, .from = JobState::running, .steps = done, .hold = first[0].hold};
  EXPECT_EQ(error_of([&] { dead.write({late}); }).code(), ErrorCode::failed_precondition);
  EXPECT_EQ(error_of([&] {
              add("more");
              dead.take(wanted());
            }).code(),
            ErrorCode::failed_precondition);
  EXPECT_EQ(state(a), JobState::restart_ready);
}

TEST_P(LeasesTest, AClockThatIsSetCostsNobodyItsJobs) {
  add("a");
  auto other_connection = JobDatabase::open(folder());
  GivenClock clock;
  for (auto* connection : {jobs_.get(), &other_connection})
    body_of(*connection).lease_clock = &clock;
  Leases living(*jobs_, kLong, "{}"), other(other_connection, kLong, "{}");
  ASSERT_EQ(living.take(wanted()).size(), 1U);
  for (const auto step : {3600s, -7200s, 61s, 86400s * 365}) {
    clock.step_date(step);
    for (int quarter = 0; quarter < 8; ++quarter) {  // it speaks four times in each lease
      EXPECT_EQ(other.free_lost(), 0) << step.count();
      clock.advance(15s);
      living.write({});
    }
  }
  // One that is silent is found after its lease, also when the clock went back.
  clock.step_date(-3600s);
  EXPECT_EQ(other.free_lost(), 0);
  clock.advance(61s);
  EXPECT_EQ(other.free_lost(), 1);
}

// The heir has just begun: the dates tell it that the lease is over, and it waits for a sign.
TEST_P(LeasesTest, WhoComesLaterWatchesForHalfALease) {
  add("a");
  auto other_connection = JobDatabase::open(folder());
  GivenClock clock;
  for (auto* connection : {jobs_.get(), &other_connection})
    body_of(*connection).lease_clock = &clock;
  Leases dead(*jobs_, kLong, "{}");
  ASSERT_EQ(dead.take(wanted()).size(), 1U);
  clock.advance(10h);
  Leases heir(other_connection, kLong, "{}");
  EXPECT_EQ(heir.free_lost(), 0);
  clock.advance(29s);
  EXPECT_EQ(heir.free_lost(), 0);
  clock.advance(1s);
  EXPECT_EQ(heir.free_lost(), 1);
}

TEST_P(LeasesTest, SeesKillsAndGivesBackTheRest) {
  const JobId a = add("a"), b = add("b");
  Leases leases(*jobs_, kLong, "{}");
  const auto taken = leases.take(wanted());
  ASSERT_EQ(taken.size(), 2U);
  jobs_->kill({a}, false);
  EXPECT_THAT(leases.killed(), testing::ElementsAre(a));
  EXPECT_THAT(leases.write({finish(taken[0]), finish(taken[1])}),
              testing::ElementsAre(false, true));
  EXPECT_EQ(state(a), JobState::user_killed);
  EXPECT_EQ(state(b), JobState::job_finished);
  const JobId c = add("c");
  ASSERT_EQ(leases.take(wanted()).size(), 1U);
  leases.end();
  EXPECT_EQ(jobs_->job(c).launcher, 0);
  EXPECT_EQ(jobs_->job(a).launcher, 0);
  EXPECT_EQ(Leases(*jobs_, kLong, "{}").take(wanted()).size(), 1U);
}

TEST_P(LeasesTest, ManyLaunchersTakeEachJobOnce) {
  std::vector<Job> many(400, plain_job("x"));
  jobs_->create(many);
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      auto own = JobDatabase::open(folder());
      Leases leases(own, kLong, "{}");
      auto few = wanted();
      few.single = 7;
      for (int empty = 0; empty < 3;) {
        const auto taken = leases.take(few);
        if (taken.empty()) {
          ++empty;
          continue;
        }
        std::vector<Changes::Chain> chains;
        for (const auto& one : taken) chains.push_back(finish(one));
        for (const bool written : leases.write(chains)) finished += written ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(finished, 400);
  for (const auto& job : jobs_->find({})) EXPECT_EQ(job.state, JobState::job_finished);
}

}  // namespace
}  // namespace kolo::test

// Applications, jobs, dependencies, kills: the same over every store.
#include <atomic>
#include <thread>

#include "conformance/jobs/jobs_fixture.h"
#include "jobs/database/state_counts.h"
#include "store/migrations.h"

namespace kolo::test {
namespace {

using jobs::Job;
using jobs::JobDatabase;
using jobs::JobId;
using jobs::JobState;
using testing::ElementsAre;
using testing::HasSubstr;

using JobDatabaseTest = JobsTest;
INSTANTIATE_TEST_SUITE_P(All, JobDatabaseTest, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param; });

TEST_P(JobDatabaseTest, GivesBackAllFields) {
  Job job = plain_job("odd \"name\" $(x)");
  job.args = "--a 'b c' \"$HOME\"";
  job.num_nodes = 3, job.ranks_per_node = 4, job.threads_per_rank = 2, job.threads_per_core = 2;
  job.gpus_per_rank = 0.5, job.node_packing_count = 7, job.wall_time_minutes = 90;
  job.environ = {"A=1", "B=it's \"so\"\n$(touch x)\t\\N"};
  job.mpi_flags = "--bind-to none", job.input_files = "*.txt", job.stage_in_url = "/tmp/x";
  job.auto_timeout_retry = false, job.post_error_handler = true, job.max_retries = 2;
  job.time_limit_seconds = 1.5, job.data = R"({"k":[1,2]})", job.cpu_affinity = "depth";
  const JobId id = jobs_->create(job);
  const Job got = JobDatabase::open(folder()).job(id);
  EXPECT_EQ(got.name, job.name);
  EXPECT_EQ(got.args, job.args);
  EXPECT_EQ(got.num_nodes, 3);
  EXPECT_EQ(got.ranks_per_node, 4);
  EXPECT_EQ(got.threads_per_core, 2);
  EXPECT_EQ(got.gpus_per_rank, 0.5);
  EXPECT_EQ(got.node_packing_count, 7);
  EXPECT_EQ(got.environ, job.environ);
  EXPECT_EQ(got.data, job.data);
  EXPECT_FALSE(got.auto_timeout_retry);
  EXPECT_TRUE(got.post_error_handler);
  EXPECT_EQ(got.time_limit_seconds, 1.5);
  EXPECT_EQ(got.state, JobState::ready);
  EXPECT_EQ(path_of(id), "CREATED READY");
  EXPECT_EQ(jobs_->folder_of(got).filename(), fmt::format("{}_{}", job.name, int(id)));
}

TEST_P(JobDatabaseTest, KeepsApplications) {
  jobs_->set_application({"AMBS", "/usr/bin/python -m x", "pre 1", "post", "env.sh", "d"});
  jobs_->set_application({.name = "AMBS", .executable = "other", .postprocess = "p"});
  const auto ambs = jobs_->application("AMBS");
  EXPECT_EQ(ambs.executable, "other");
  EXPECT_EQ(ambs.preprocess, "");
  EXPECT_EQ(jobs_->applications().size(), 2U);
  EXPECT_THAT(error_of([&] { (void)jobs_->application("AMBZ"); }).message(), HasSubstr("AMBS"));
  add("a");
  EXPECT_EQ(error_of([&] { jobs_->remove_application("true"); }).code(),
            ErrorCode::failed_precondition);
  jobs_->remove_application("AMBS");
  EXPECT_EQ(jobs_->applications().size(), 1U);
}

TEST_P(JobDatabaseTest, RefusesWhatCannotRun) {
  const auto refused = [this](auto&& change) {
    Job job = plain_job("x");
    change(job);
    return error_of([&] { jobs_->create(job); });
  };
  EXPECT_EQ(refused([](Job& job) { job.application = "none"; }).code(), ErrorCode::not_found);
  EXPECT_THAT(refused([](Job& job) { job.parents = {JobId{4711}}; }).message(),
              HasSubstr("no job 4711"));
  EXPECT_EQ(refused([](Job& job) { job.num_nodes = 0; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](Job& job) { job.workflow = "../up"; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](Job& job) { job.name = ".."; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](Job& job) { job.environ = {"=x"}; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](Job& job) { job.args = "'open"; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](Job& job) { job.data = "{"; }).code(), ErrorCode::invalid_argument);
  EXPECT_THAT(refused([](Job& job) { job.args.assign(10 << 20, 'x'); }).message(),
              HasSubstr("write it to a file"));
  EXPECT_THAT(refused([](Job& job) { job.args.assign(1 << 20, 'x'); }).message(),
              HasSubstr("an argument"));
  // All or none.
  EXPECT_THROW(jobs_->create(std::vector<Job>{plain_job("good"), plain_job("bad/name")}), Error);
  EXPECT_TRUE(jobs_->find({}).empty());
}

TEST_P(JobDatabaseTest, WaitsForParents) {
  const JobId a = add("a"), b = add("b"), c = add("c", {a, b, a});
  EXPECT_EQ(state(c), JobState::awaiting_parents);
  EXPECT_THAT(jobs_->parents(c), ElementsAre(a, b));
  EXPECT_THAT(jobs_->children(a), ElementsAre(c));
  const JobId loose = [&] {
    auto job = plain_job("loose");
    job.parents = {a};
    job.wait_for_parents = false;
    return jobs_->create(job);
  }();
  EXPECT_EQ(state(loose), JobState::ready);
  jobs_->kill({a}, false);
  EXPECT_EQ(state(a), JobState::user_killed);
  EXPECT_EQ(path_of(c), "CREATED AWAITING_PARENTS FAILED");
  EXPECT_THAT(jobs_->history(c).back().reason, HasSubstr("USER_KILLED"));
  EXPECT_EQ(state(b), JobState::ready);
  EXPECT_EQ(state(loose), JobState::ready);
  EXPECT_EQ(state(add("late", {a})), JobState::failed);
}

TEST_P(JobDatabaseTest, RefusesCycles) {
  const JobId a = add("a"), b = add("b"), c = add("c");
  jobs_->add_dependency(a, b);
  jobs_->add_dependency(b, c);
  jobs_->add_dependency(b, c);
  EXPECT_EQ(path_of(c), "CREATED READY AWAITING_PARENTS");
  EXPECT_EQ(error_of([&] { jobs_->add_dependency(c, a); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { jobs_->add_dependency(a, a); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { jobs_->add_dependency(JobId{99}, a); }).code(), ErrorCode::not_found);
  EXPECT_EQ(state(a), JobState::ready);
  EXPECT_TRUE(jobs_->parents(a).empty());
}

TEST_P(JobDatabaseTest, KillsWithAllBelow) {
  const JobId a = add("a"), b = add("b", {a}), c = add("c", {b}), other = add("d");
  EXPECT_EQ(jobs_->kill({a}, true), 3);
  EXPECT_EQ(state(c), JobState::user_killed);
  EXPECT_EQ(state(b), JobState::user_killed);
  EXPECT_EQ(state(other), JobState::ready);
  EXPECT_EQ(jobs_->kill({a}, true), 0);
}

TEST_P(JobDatabaseTest, CountsFollowChangesByOthersAndByOneself) {
  auto watching = JobDatabase::open(folder());
  jobs::StateCounts counts;
  EXPECT_TRUE(counts.of(watching).empty());
  const JobId a = add("a"), b = add("b");
  ASSERT_EQ(counts.of(watching).size(), 1U);
  EXPECT_EQ(counts.of(watching)[0].jobs, 2);
  jobs_->kill({a}, false);
  EXPECT_EQ(counts.of(watching).size(), 2U);
  counts.forget();
  watching.kill({b}, false);
  ASSERT_EQ(counts.of(watching).size(), 1U);
  EXPECT_EQ(counts.of(watching)[0].state, JobState::user_killed);
}

TEST_P(JobDatabaseTest, FindsRemovesAndModifies) {
  const JobId a = add("search");
  jobs_->create(std::vector<Job>{plain_job("task1", "TEST2"), plain_job("task2", "other_100%")});
  EXPECT_EQ(jobs_->find({.workflow = "TEST"}).size(), 1U);
  EXPECT_EQ(jobs_->find({.workflow = "TEST*"}).size(), 2U);
  EXPECT_EQ(jobs_->find({.workflow = "test*"}).size(), 0U);
  EXPECT_EQ(jobs_->find({.workflow = "S"}).size(), 0U);
  EXPECT_EQ(jobs_->find({.workflow = "*100%"}).size(), 1U);
  EXPECT_EQ(jobs_->find({.workflow = "TEST[0-9]"}).size(), 1U);
  EXPECT_EQ(jobs_->find({.workflow = "TEST[!0-9]"}).size(), 0U);
  EXPECT_EQ(jobs_->find({.name = "task"}).size(), 0U);
  EXPECT_EQ(jobs_->find({.name = "task?"}).size(), 2U);
  EXPECT_EQ(jobs_->count_by_state("TEST").size(), 1U);
  EXPECT_EQ(jobs_->find({.state = JobState::failed}).size(), 0U);
  EXPECT_EQ(jobs_->find({.limit = 1}).size(), 1U);
  const auto newest = jobs_->find({.limit = 1, .newest_first = true});
  ASSERT_EQ(newest.size(), 1U);
  EXPECT_EQ(newest[0].id, jobs_->find({}).back().id);
  jobs_->modify(a, "num-nodes", "4");
  jobs_->modify(a, "env", "A=$(b)");
  EXPECT_EQ(jobs_->job(a).num_nodes, 4);
  EXPECT_THAT(jobs_->job(a).environ, ElementsAre("A=$(b)"));
  EXPECT_THAT(error_of([&] { jobs_->modify(a, "num_node", "4"); }).message(),
              HasSubstr("num_nodes"));
  EXPECT_EQ(error_of([&] { jobs_->modify(a, "num_nodes", "4x"); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { jobs_->modify(a, "state", "RUN_DONE"); }).code(),
            ErrorCode::failed_precondition);
  const JobId child = add("child", {a});
  EXPECT_EQ(error_of([&] { jobs_->remove({a}); }).code(), ErrorCode::failed_precondition);
  EXPECT_EQ(jobs_->remove({a, child}), 2);
  EXPECT_EQ(error_of([&] { (void)jobs_->job(a); }).code(), ErrorCode::not_found);
  EXPECT_TRUE(jobs_->history(a).empty());
}

TEST_P(JobDatabaseTest, RetriesWhatFailedAndWhatFailedWithIt) {
  const JobId a = add("a"), b = add("b", {a}), c = add("c", {b}), other = add("other");
  const JobId both = add("both", {b, other});
  jobs_->kill({a, other}, false);
  EXPECT_EQ(state(c), JobState::failed);
  // Alone it would wait for ever.
  EXPECT_THAT(error_of([&] { jobs_->retry({b}); }).message(), HasSubstr("retry job 1"));
  EXPECT_EQ(jobs_->retry({a}), 3);
  EXPECT_EQ(state(a), JobState::ready);
  EXPECT_EQ(state(b), JobState::awaiting_parents);
  EXPECT_EQ(state(c), JobState::awaiting_parents);
  EXPECT_EQ(state(both), JobState::failed);  // its other parent is as it was
  EXPECT_EQ(error_of([&] { jobs_->retry({a}); }).code(), ErrorCode::failed_precondition);
  jobs_->modify(other, "state", "restart_ready");
  EXPECT_EQ(state(other), JobState::ready);  // it was never staged in
  EXPECT_EQ(state(both), JobState::awaiting_parents);
  EXPECT_EQ(jobs_->history(a).back().reason, "retried by the user");
}

TEST_P(JobDatabaseTest, NumbersJobsOfManyWritersOnce) {
  constexpr int kWriters = 4, kJobs = 50;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([this, w] {
      auto own = JobDatabase::open(folder());
      for (int i = 0; i < kJobs; ++i) own.create(plain_job(fmt::format("w{}_{}", w, i)));
    });
  for (auto& writer : writers) writer.join();
  const auto all = jobs_->find({});
  ASSERT_EQ(all.size(), std::size_t{kWriters * kJobs});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(int(all[i].id), int(i) + 1);
}

TEST_P(JobDatabaseTest, RefusesADatabaseOfANewerKolo) {
  constexpr store::Migration kFuture[] = {{1000, "SELECT 1"}};
  auto database =
      GetParam() == "sqlite" ? store::open_database((folder() / "kolo.db").string()) : connect();
  store::migrate(*database, "jobs", kFuture);
  const Error error = error_of([&] { JobDatabase::open(folder()); });
  EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  EXPECT_THAT(error.message(), HasSubstr("newer kolo"));
  EXPECT_EQ(error_of([&] { JobDatabase::open("/nowhere"); }).code(), ErrorCode::not_found);
  EXPECT_EQ(error_of([&] { JobDatabase::init(folder()); }).code(), ErrorCode::already_exists);
}

TEST(JobDatabaseFolder, IsMadeByOneOfManyThatTry) {
  const TempDir scratch;
  const auto folder = scratch.path() / "jobs";
  std::atomic<int> made{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      try {
        JobDatabase::init(folder);
        ++made;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::already_exists) << error.what();
        ++refused;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(JobDatabaseFolder, OfOthersStaysWhenMakingItFails) {
  const TempDir scratch;
  const auto folder = scratch.path() / "jobs";
  // Nobody listens there; whoever made the folder meanwhile keeps it.
  EXPECT_THROW(JobDatabase::init(folder, "postgresql://127.0.0.1:1/none"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder));
  std::filesystem::create_directory(folder);
  write_file_atomically(folder / "note", "mine");
  EXPECT_THROW(JobDatabase::init(folder, "postgresql://127.0.0.1:1/none"), Error);
  EXPECT_EQ(read_file(folder / "note"), "mine");
  JobDatabase::init(folder);
  EXPECT_THROW(JobDatabase::init(folder), Error);
}

TEST(JobDatabaseFolder, RefusesJobsWithMoreRanksThanNumbersHold) {
  const TempDir scratch;
  auto jobs = JobDatabase::init(scratch.path() / "jobs");
  jobs.set_application({.name = "app", .executable = "/bin/true"});
  Job job;
  job.name = "job", job.workflow = "flow", job.application = "app";
  job.ranks_per_node = job.threads_per_rank = 65536;
  EXPECT_EQ(error_of([&] { jobs.create(job); }).code(), ErrorCode::invalid_argument);
  job.threads_per_rank = 1, job.num_nodes = 65536;
  EXPECT_EQ(error_of([&] { jobs.create(job); }).code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace kolo::test

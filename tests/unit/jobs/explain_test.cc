// Workflows of unusual depth, and records that are damaged.
#include "jobs/database/explain.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <functional>

#include "base/errors.h"
#include "base/files.h"
#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// With a stack on which little can be nested.
void on_a_small_stack(std::function<void()> work) {
  constexpr std::size_t kBytes = 256U << 10;
  pthread_attr_t attributes{};
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
  pthread_t thread{};
  const auto run = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

class Explain : public testing::Test {
 protected:
  Explain() { jobs_.set_application({.name = "a", .executable = "true"}); }
  JobId add(std::vector<JobId> parents = {}) {
    Job job;
    job.name = "job";
    job.application = "a";
    job.parents = std::move(parents);
    return jobs_.create(job);
  }
  void add_launcher(std::int64_t id, const std::string& about) {
    body_of(jobs_)
        .store
        ->prepare(
            "INSERT INTO launchers (id, host, pid, state, started, heard, lease_seconds, about) "
            "VALUES ($1, 'host', 1, 0, 0, $2, 3600, $3)")
        .bind(1, id)
        .bind(2, body_of(jobs_).lease_date())
        .bind(3, about)
        .run();
  }

  TempDir scratch_;
  JobDatabase jobs_ = JobDatabase::init(scratch_.path() / "db");
};

TEST_F(Explain, ChainsOfJobsMayBeLong) {
  constexpr int kJobs = 3000;
  const JobId first = add();
  JobId last = first;
  for (int i = 1; i < kJobs; ++i) last = add({last});
  on_a_small_stack([&] {
    EXPECT_EQ(jobs_.kill({first}, /*recursive=*/false), 1);
    EXPECT_EQ(jobs_.job(last).state, JobState::failed);
    EXPECT_THAT(explain(jobs_, last), Contains("kolo retry 1 runs it again"));
    EXPECT_EQ(jobs_.retry({first}), kJobs);
    EXPECT_EQ(jobs_.job(last).state, JobState::awaiting_parents);
  });
}

TEST_F(Explain, AJobThatWaitsForItselfHasAnEnd) {
  const JobId one = add(), two = add({one});
  jobs_.kill({one}, /*recursive=*/false);
  body_of(jobs_).store->execute("INSERT INTO job_parents (child, parent) VALUES (1, 2)");
  EXPECT_THAT(explain(jobs_, two), Contains(HasSubstr("kolo retry")));
}

TEST_F(Explain, DamagedRecordsOfLaunchersAreSaid) {
  const Job job = jobs_.job(add());
  std::int64_t id = 0;
  for (const char* about :
       {"{\"nodes\":-1}", "{\"nodes\":2000000000}", "{\"nodes\":99999999999999999999}",
        "{\"cores\":-5}", "{\"nodes\":1000000,\"cores\":1000000}", "{\"nodes\":\"many\"}",
        "{\"workflow\":[]}", "[1]", "3", "{", ""})
    add_launcher(++id, about);
  const Prospect prospect = prospect_of(jobs_, job);
  EXPECT_EQ(prospect.alive, id);
  EXPECT_EQ(prospect.able, 0);
  EXPECT_THAT(prospect.obstacle, HasSubstr("its record cannot be read"));
  int said = 0;
  for (const auto& line : explain(jobs_, job.id))
    said += line.find("its record cannot be read") != std::string::npos ? 1 : 0;
  EXPECT_EQ(said, id);
  add_launcher(++id, "{\"nodes\":2,\"cores\":4}");
  EXPECT_EQ(prospect_of(jobs_, job).able, 1);
}

}  // namespace
}  // namespace kolo::jobs

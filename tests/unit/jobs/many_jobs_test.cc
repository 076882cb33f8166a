// A launcher that has run many jobs has no more memory and descriptors than one that has run a few.
// KOLO_TEST_SCALE=100 makes a million of ten thousand.
#include "support/footprint.h"
#include "support/scale.h"
#include "unit/jobs/pilot_fixture.h"

namespace kolo::jobs {
namespace {

class ManyJobs : public PilotTest {
 protected:
  void run_jobs(int count) {
    constexpr int kTogether = 100;
    Job job;
    job.name = "job", job.workflow = "flow", job.application = "app";
    const std::vector<Job> some(kTogether, job);
    for (int done = 0; done < count; done += kTogether) {
      jobs_.create(some);
      pilot_->notified();
      int ended = 0;
      for (int turns = 0; ended < kTogether; ++turns) {
        ASSERT_LT(turns, 1000) << "jobs are not started";
        work();
        for (const auto& started : std::exchange(tasks_.started, {})) {
          pilot_->task_ended(started.task.id, exited(0), "");
          ++ended;
        }
      }
      work();
    }
  }
};

TEST_F(ManyJobs, LeaveNothingBehind) {
  const int half = std::max(500, test::scaled(5000));
  body_of(jobs_).store->execute("PRAGMA cache_size=-1000");  // it fills, which is no leak
  begin(25);
  run_jobs(half);
  const auto before = test::Footprint::now();
  run_jobs(half);
  const auto after = test::Footprint::now();
  const std::string text = after.against(before, 2L * half, "jobs");
  fmt::print("{}\n", text);
  EXPECT_EQ(after.descriptors, before.descriptors) << text;
  if (!test::kSanitized) {  // AddressSanitizer keeps what was freed for a while
    EXPECT_LT(after.bytes, before.bytes + (4L << 20)) << text;
  }
  EXPECT_EQ(summary_.finished, 2L * half);
}

}  // namespace
}  // namespace kolo::jobs

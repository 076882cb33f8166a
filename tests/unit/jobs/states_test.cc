#include <gmock/gmock.h>

#include "base/errors.h"
#include "kolo/jobs.h"

namespace kolo::jobs {
namespace {

constexpr int kCount = 14;

TEST(States, HaveNamesThatAreReadBack) {
  for (int i = 0; i < kCount; ++i) {
    const JobState state{i};
    EXPECT_EQ(parse_state(to_string(state)), state);
  }
  EXPECT_EQ(parse_state("job_finished"), JobState::job_finished);
  EXPECT_THROW(parse_state("DONE"), Error);
}

TEST(States, ThatNobodyKnowsLeadNowhere) {
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{14}, std::int64_t{1} << 40}) {
    const auto unknown = static_cast<JobState>(number);
    EXPECT_EQ(to_string(unknown), "?");
    for (const JobState known : {JobState::created, JobState::running, JobState::failed}) {
      EXPECT_FALSE(is_legal(unknown, known));
      EXPECT_FALSE(is_legal(known, unknown));
    }
  }
}

TEST(States, LeadFromTheBeginningToAnEnd) {
  using enum JobState;
  const JobState path[] = {created, awaiting_parents, ready,         staged_in,   preprocessed,
                           running, run_done,         postprocessed, job_finished};
  for (std::size_t i = 1; i < std::size(path); ++i) EXPECT_TRUE(is_legal(path[i - 1], path[i]));
  EXPECT_TRUE(is_legal(running, run_error));
  EXPECT_TRUE(is_legal(run_timeout, restart_ready));
  EXPECT_TRUE(is_legal(restart_ready, running));
  EXPECT_FALSE(is_legal(preprocessed, run_done));
  EXPECT_FALSE(is_legal(run_done, running));
  for (int i = 0; i < kCount; ++i) {
    const JobState state{i};
    EXPECT_FALSE(is_legal(state, state));
    EXPECT_EQ(is_legal(state, user_killed), !is_end(state));
    EXPECT_EQ(is_legal(state, failed), !is_end(state));
    EXPECT_FALSE(is_legal(job_finished, state));
    const bool is_retry = state == ready || state == restart_ready || state == awaiting_parents;
    for (const JobState end : {failed, user_killed}) EXPECT_EQ(is_legal(end, state), is_retry);
  }
}

}  // namespace
}  // namespace kolo::jobs

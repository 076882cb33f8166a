#include "jobs/pilot/run_queue.h"

#include <gmock/gmock.h>

namespace kolo::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RunQueueTest : public testing::Test {
 protected:
  static Need nodes(int count) { return {.nodes = count, .cores = 1, .gpus = 0, .share = 1}; }
  std::vector<int> start(double now) {
    std::vector<int> ids;
    for (const auto& one : queue_.start(now)) ids.push_back(static_cast<int>(one.id));
    return ids;
  }
  RunQueue queue_{{{"a", 4, 0}, {"b", 4, 0}, {"c", 4, 0}}, JobMode::mixed};
};

TEST_F(RunQueueTest, StartsTheLongestFirst) {
  queue_.add(JobId{1}, nodes(1), 10);
  queue_.add(JobId{2}, nodes(1), 30);
  queue_.add(JobId{3}, nodes(1), 20);
  queue_.add(JobId{4}, nodes(1), 40);
  EXPECT_THAT(start(0), ElementsAre(4, 2, 3));
  queue_.ended(JobId{2});
  EXPECT_THAT(start(5), ElementsAre(1));
}

TEST_F(RunQueueTest, ReservesForALargeJobAndFillsTheTimeBefore) {
  queue_.add(JobId{1}, nodes(1), 100);
  EXPECT_THAT(start(0), ElementsAre(1));
  queue_.add(JobId{2}, nodes(3), 50);  // waits for node a until 100
  queue_.add(JobId{3}, nodes(1), 40);  // ends before
  queue_.add(JobId{4}, nodes(1), 45);
  EXPECT_THAT(start(58), ElementsAre(3));  // 58 + 45 is too late for job 4
  queue_.ended(JobId{3});
  EXPECT_THAT(start(98), IsEmpty());
  queue_.ended(JobId{1});
  EXPECT_THAT(start(100), ElementsAre(2));
}

TEST_F(RunQueueTest, ALargeShortJobIsNotStarvedByLongSmallOnes) {
  int next = 1;
  const auto add_small = [&] { queue_.add(JobId{next++}, nodes(1), 100); };
  for (int i = 0; i < 3; ++i) add_small();
  std::vector<int> running = start(0);
  ASSERT_EQ(running.size(), 3U);
  const int large = next++;
  queue_.add(JobId{large}, nodes(2), 1);
  // Each time one ends another is there already.
  int ended = 0;
  for (double now = 1; ended < 100; ++now, ++ended) {
    add_small();
    queue_.ended(JobId{running.front()});
    running.erase(running.begin());
    for (const int id : start(now)) running.push_back(id);
    if (std::find(running.begin(), running.end(), large) != running.end()) break;
  }
  EXPECT_LT(ended, 40) << "the large job has not started";
}

TEST_F(RunQueueTest, AJobThatNeverFitsHoldsNobodyUp) {
  queue_.add(JobId{1}, nodes(7), 1000);
  queue_.add(JobId{2}, nodes(1), 10);
  EXPECT_THAT(start(0), ElementsAre(2));
  queue_.remove(JobId{1});
  EXPECT_EQ(queue_.waiting(), 0U);
}

TEST_F(RunQueueTest, ALostNodeIsNotUsed) {
  queue_.nodes().lose(1);
  for (int i = 1; i < 5; ++i) queue_.add(JobId{i}, nodes(1), 1);
  EXPECT_EQ(start(0).size(), 2U);
}

}  // namespace
}  // namespace kolo::jobs

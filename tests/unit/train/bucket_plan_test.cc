#include "train/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/bucket_tuner.h"

namespace kolo::train {
namespace {

ParameterInfo parameter(std::size_t count, DataType type = DataType::float32) {
  ParameterInfo info;
  info.count = count;
  info.type = type;
  return info;
}

std::vector<std::vector<std::size_t>> members(const BucketPlan& plan) {
  std::vector<std::vector<std::size_t>> out;
  for (const auto& bucket : plan.buckets) {
    out.emplace_back();
    for (const auto& member : bucket.members) out.back().push_back(member.parameter);
  }
  return out;
}

TEST(BucketPlan, FillsBucketsInTheOrderOfGradients) {
  std::vector<ParameterInfo> parameters(6, parameter(100));  // 448 bytes each, with padding
  const std::vector<std::uint32_t> order{5, 4, 3, 2, 1, 0};
  const auto plan = make_bucket_plan(parameters, order, {.bucket_bytes = 1000, .shards = 0});
  EXPECT_THAT(members(plan),
              testing::ElementsAre(testing::ElementsAre(5, 4), testing::ElementsAre(3, 2),
                                   testing::ElementsAre(1, 0)));
  EXPECT_EQ(plan.buckets[0].members[1].offset, 112U);  // on a cache line
  const auto other = make_bucket_plan(parameters, order, {.bucket_bytes = 1500, .shards = 0});
  EXPECT_NE(plan.fingerprint, other.fingerprint);
}

TEST(BucketPlan, SeparatesTypesGroupsAndSparseOnes) {
  std::vector<ParameterInfo> parameters{parameter(10), parameter(10, DataType::float64),
                                        parameter(10), parameter(10), parameter(10)};
  parameters[2].user_group = parameters[4].user_group = 0;
  parameters[3].is_sparse = true;
  const std::vector<std::uint32_t> order{0, 1, 2, 3, 4};
  const auto plan = make_bucket_plan(parameters, order, {.bucket_bytes = 1 << 20, .shards = 0});
  EXPECT_THAT(members(plan), testing::ElementsAre(testing::ElementsAre(0), testing::ElementsAre(1),
                                                  testing::ElementsAre(2, 4)));
}

TEST(BucketPlan, ShardsDivide) {
  std::vector<ParameterInfo> parameters{parameter(33), parameter(50)};
  parameters[1].optimizer_group = 1;
  const std::vector<std::uint32_t> order{0, 1};
  const auto plan = make_bucket_plan(parameters, order, {.bucket_bytes = 1 << 20, .shards = 3});
  ASSERT_EQ(plan.buckets.size(), 2U);
  for (const auto& bucket : plan.buckets) EXPECT_EQ(bucket.count % 3, 0U);
}

/// Runs a tuner on a machine where a step takes `seconds(bytes)`; returns the size it ends with.
std::size_t tuned(BucketTuner& tuner, std::size_t bytes,
                  const std::function<double(std::size_t, int)>& seconds) {
  int step = 0;
  while (!tuner.is_done()) {
    EXPECT_LT(step, 1000) << "it does not end";
    if (const auto next = tuner.record(seconds(bytes, step++))) bytes = *next;
  }
  return bytes;
}

TEST(BucketTuner, FindsTheFastest) {
  BucketTuner tuner(1000);
  EXPECT_EQ(tuned(tuner, 1000, [](std::size_t b, int) { return b == 4000 ? 0.5 : 1.0; }), 4000U);
  EXPECT_THAT(tuner.csv(), testing::HasSubstr(",4000,0.500000,1\n"));
}

TEST(BucketTuner, StaysWhenNothingIsFaster) {
  BucketTuner tuner(1000);
  EXPECT_EQ(tuned(tuner, 1000, [](std::size_t b, int) { return b == 1000 ? 1.0 : 1.2; }), 1000U);
  BucketTuner level(1000);
  EXPECT_EQ(tuned(level, 1000, [](std::size_t, int) { return 1.0; }), 1000U);
}

TEST(BucketTuner, DoesNotTrustASingleTrial) {
  // 8000 looks faster the first time only: the machine was quiet then.
  BucketTuner tuner(1000);
  EXPECT_EQ(tuned(tuner, 1000,
                  [](std::size_t b, int step) { return b == 8000 && step < 72 ? 0.5 : 1.0; }),
            1000U);
}

}  // namespace
}  // namespace kolo::train

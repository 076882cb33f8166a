#include "engine/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::runtime {
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

}  // namespace
}  // namespace kolo::runtime

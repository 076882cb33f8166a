// The allocations that Balsam's users know from "Running on Theta", on paper: 128 nodes.
#include <gmock/gmock.h>

#include <map>

#include "jobs/pilot/run_queue.h"

namespace kolo::jobs {
namespace {

std::vector<Node> theta(int count) {
  std::vector<Node> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back({"node" + std::to_string(i), 64, 0});
  return nodes;
}

Job job_with(int packing, int nodes = 1) {
  Job job;
  job.node_packing_count = packing;
  job.num_nodes = nodes;
  return job;
}

/// A search first, then as many evaluations as start; how many jobs each node has.
struct Allocation {
  std::vector<int> search_nodes;
  std::map<int, int> evaluators;  // by node
  int total = 0;
};
Allocation allocate(JobMode mode, int nodes, const Job& search, const Job& evaluation) {
  RunQueue queue(theta(nodes), mode);
  queue.add(JobId{1}, need_of(search, mode), 60);
  Allocation allocation;
  for (const auto& start : queue.start(0))
    for (const auto& place : start.places) allocation.search_nodes.push_back(place.node);
  for (int i = 2; i < 1000; ++i) queue.add(JobId{i}, need_of(evaluation, mode), 60);
  for (const auto& start : queue.start(0)) {
    ++allocation.evaluators[start.places[0].node];
    ++allocation.total;
  }
  return allocation;
}

TEST(Allocation, SerialModeHasAMasterASearchAnd126Evaluators) {
  const auto got = allocate(JobMode::serial, 128, job_with(1), job_with(1));
  EXPECT_THAT(got.search_nodes, testing::ElementsAre(1));
  EXPECT_EQ(got.total, 126);
  EXPECT_FALSE(got.evaluators.contains(0));
  EXPECT_FALSE(got.evaluators.contains(1));
  EXPECT_EQ(got.evaluators.at(127), 1);
}

TEST(Allocation, PackingOfFourGivesTheSearchThreeNeighbours) {
  const auto got = allocate(JobMode::serial, 128, job_with(4), job_with(4));
  EXPECT_THAT(got.search_nodes, testing::ElementsAre(1));
  EXPECT_EQ(got.evaluators.at(1), 3);
  for (int node = 2; node < 128; ++node) EXPECT_EQ(got.evaluators.at(node), 4);
  EXPECT_EQ(got.total, 3 + 126 * 4);
}

// The guide draws one evaluator beside a search of half a node; by its own rule (shares of a node
// add up to one) there is room for two.
TEST(Allocation, PackingOfTwoWithFourWorkersFillsTheSearchNode) {
  const auto got = allocate(JobMode::serial, 128, job_with(2), job_with(4));
  EXPECT_THAT(got.search_nodes, testing::ElementsAre(1));
  EXPECT_EQ(got.evaluators.at(1), 2);
  for (int node = 2; node < 128; ++node) EXPECT_EQ(got.evaluators.at(node), 4);
}

TEST(Allocation, OneNodeIsSharedWithTheMaster) {
  const auto got = allocate(JobMode::serial, 1, job_with(4), job_with(4));
  EXPECT_THAT(got.search_nodes, testing::ElementsAre(0));
  EXPECT_EQ(got.evaluators.at(0), 3);
}

TEST(Allocation, ElevenAgentsLeave117NodesTenForEach) {
  const auto got = allocate(JobMode::mpi, 128, job_with(1, 11), job_with(4));
  EXPECT_EQ(got.search_nodes.size(), 11U);
  // Whole nodes whatever the packing count: no more than one task on each.
  EXPECT_EQ(got.total, 117);
  EXPECT_EQ(117 / 11, 10);
  EXPECT_EQ(117 % 11, 7);  // idle in Balsam; here 117 evaluations of one node use them all
  for (const auto& [node, count] : got.evaluators) EXPECT_EQ(count, 1);
}

TEST(Allocation, MixedModePacksBesideJobsOfSeveralNodes) {
  RunQueue queue(theta(4), JobMode::mixed);
  queue.add(JobId{1}, need_of(job_with(2, 3), JobMode::mixed), 600);
  for (int i = 2; i < 20; ++i) queue.add(JobId{i}, need_of(job_with(2), JobMode::mixed), 60);
  EXPECT_EQ(queue.start(0).size(), 1U + 3 + 2);
  EXPECT_FALSE(queue.nodes().has_room());
}

TEST(Allocation, CoresAndGpusAreCounted) {
  Nodes nodes({{"a", 4, 2}, {"b", 8, 0}}, JobMode::mixed);
  Job job = job_with(16);
  job.threads_per_rank = 3;
  const Need need = need_of(job, JobMode::mixed);
  EXPECT_EQ(nodes.take(need, nodes.find(need))[0].cores, (std::vector<int>{0, 1, 2}));
  EXPECT_THAT(nodes.find(need), testing::ElementsAre(1));
  Job gpu = job_with(16);
  gpu.gpus_per_rank = 0.5;
  const Need half = need_of(gpu, JobMode::mixed);
  EXPECT_EQ(nodes.take(half, nodes.find(half))[0].gpus, (std::vector<int>{0}));
  gpu.gpus_per_rank = 1;
  EXPECT_THAT(nodes.find(need_of(gpu, JobMode::mixed)), testing::IsEmpty());  // no core left on a
  EXPECT_EQ(nodes.obstacle(need_of(gpu, JobMode::mixed)), "");
  gpu.gpus_per_rank = 3;
  EXPECT_THAT(nodes.obstacle(need_of(gpu, JobMode::mixed)), testing::HasSubstr("3 GPUs"));
  job.threads_per_rank = 9;
  EXPECT_THAT(nodes.obstacle(need_of(job, JobMode::mixed)), testing::HasSubstr("9 cores"));
  EXPECT_THAT(nodes.obstacle(need_of(job_with(1, 3), JobMode::mixed)),
              testing::HasSubstr("3 nodes"));
}

TEST(Allocation, ThirdsFillANode) {
  Nodes nodes({{"a", 4, 0}}, JobMode::mixed);
  const Need third = need_of(job_with(3), JobMode::mixed);
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(nodes.find(third).empty());
    nodes.take(third, nodes.find(third));
  }
  EXPECT_FALSE(nodes.has_room());
}

}  // namespace
}  // namespace kolo::jobs

#include "hps/workers.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kolo/error.h"

namespace kolo::hps {
namespace {

TEST(Workers, FollowTheReferenceInAnAllocation) {
  // The seed's pictures: 128 nodes.
  EXPECT_EQ(workers_in({.nodes = 128, .job_mode = "serial"}), 126);
  EXPECT_EQ(workers_in({.nodes = 128, .job_mode = "serial", .evals_per_node = 4}), 507);
  EXPECT_EQ(workers_in({.nodes = 1, .job_mode = "serial", .evals_per_node = 4}), 3);
  EXPECT_EQ(workers_in({.nodes = 128, .job_mode = "mpi"}), 127);
  EXPECT_EQ(workers_in({.nodes = 128, .job_mode = "mpi", .search_nodes = 11}), 117);
  EXPECT_EQ(workers_in({.nodes = 128, .job_mode = "mpi", .nodes_per_eval = 2}), 63);
  EXPECT_EQ(workers_in({.nodes = 4, .job_mode = "mixed", .evals_per_node = 2}), 7);
  EXPECT_EQ(workers_in({.nodes = 1, .job_mode = "mpi"}), 1);
}

TEST(Workers, RefuseWhatCannotBe) {
  EXPECT_THROW((void)workers_in({.nodes = 0}), Error);
  EXPECT_THROW((void)workers_in({.nodes = 1, .job_mode = "openmp"}), Error);
  EXPECT_THROW((void)workers_here(2, 0, 1), Error);
}

TEST(Workers, FitOnThisMachine) {
  EXPECT_EQ(workers_here(8, 2, 2), 2);
  EXPECT_EQ(workers_here(2, 4, 1), 1);
}

TEST(Workers, AreSharedOutWithoutRest) {
  // 117 nodes among 11 agents: DeepHyper leaves 7 idle.
  int all = 0;
  for (int agent = 0; agent < 11; ++agent) {
    const int share = share_of_agent(117, agent, 11);
    EXPECT_TRUE(share == 10 || share == 11);
    all += share;
  }
  EXPECT_EQ(all, 117);
  EXPECT_THROW((void)share_of_agent(3, 0, 4), Error);
}

TEST(Workers, AreToldByTheEnvironment) {
  ::unsetenv("KOLO_LAUNCHER_NODES");
  EXPECT_FALSE(Allocation::from_environment());
  ::setenv("BALSAM_LAUNCHER_NODES", "4", 1);
  ::setenv("BALSAM_JOB_MODE", "serial", 1);
  ::setenv("DEEPHYPER_WORKERS_PER_NODE", "2", 1);
  const auto allocation = Allocation::from_environment();
  ASSERT_TRUE(allocation);
  EXPECT_EQ(workers_in(*allocation), 5);
  ::setenv("BALSAM_LAUNCHER_NODES", "four", 1);
  EXPECT_THROW((void)Allocation::from_environment(), Error);
  for (const char* name :
       {"BALSAM_LAUNCHER_NODES", "BALSAM_JOB_MODE", "DEEPHYPER_WORKERS_PER_NODE"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace kolo::hps

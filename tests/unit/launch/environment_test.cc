#include "launch/environment.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EnvironmentTest, AdditionsReplace) {
  EXPECT_THAT(merge_environment({"A=1", "B=2"}, {"B=3", "C=", "A=4"}),
              ElementsAre("A=4", "B=3", "C="));
  EXPECT_THAT(merge_environment({"AB=1"}, {"A=2"}), ElementsAre("AB=1", "A=2"));
}

TEST(EnvironmentTest, OtherLaunchersVariablesAreTakenOut) {
  EXPECT_THAT(
      without_launcher_variables({"PATH=/bin", "KOLO_RANK=1", "KOLO_LOG_LEVEL=info",
                                  "OMPI_COMM_WORLD_RANK=2", "OMPI_MCA_btl=tcp", "PMI_FD=3",
                                  "PMIX_RANK=1", "SLURM_PROCID=4", "SLURM_JOB_ID=7"}),
      ElementsAre("PATH=/bin", "KOLO_LOG_LEVEL=info", "OMPI_MCA_btl=tcp", "SLURM_JOB_ID=7"));
}

TEST(EnvironmentTest, PerHostVariablesAreNotForwarded) {
  EXPECT_THAT(
      forwardable({"PATH=/bin", "LD_LIBRARY_PATH=/x", "HOSTNAME=a", "SSH_AUTH_SOCK=/s", "TMPDIR=/t",
                   "DISPLAY=:0", "XDG_RUNTIME_DIR=/r", "SHLVL=2", "PWD=/p", "OLDPWD=/o",
                   "BASH_FUNC_f%%=() { x; }", "CUDA_VISIBLE_DEVICES=0", "MY_CUDA_VISIBLE_DEVICES=1",
                   "SLURM_JOB_ID=7", "HOME=/h", "USER=u", "MINE=1", "KOLO_SECRET_FD=100"}),
      ElementsAre("PATH=/bin", "LD_LIBRARY_PATH=/x", "MINE=1"));
}

TEST(EnvironmentTest, VariablesAsGiven) {
  EXPECT_EQ(resolve_variable("A=b=c", {}), "A=b=c");
  EXPECT_EQ(resolve_variable("A=", {"A=x"}), "A=");
  EXPECT_EQ(resolve_variable("A", {"AB=1", "A=x y"}), "A=x y");
  for (const char* wrong : {"A", "", "=x", "1A=x", "A-B=x", "A B=x"})
    EXPECT_THROW(resolve_variable(wrong, {"B=1"}), Error) << wrong;
}

TEST(EnvironmentTest, RanksKnowTheirPlace) {
  const std::vector<Placement> placements = {{"a", 0, 2}, {"b", 2, 1}};
  auto variables = rank_variables(placements, placements[1], 0, "10.0.0.1:7");
  for (const char* entry : {"KOLO_RANK=2", "KOLO_SIZE=3", "KOLO_LOCAL_RANK=0", "KOLO_LOCAL_SIZE=1",
                            "KOLO_CROSS_RANK=1", "KOLO_CROSS_SIZE=2", "KOLO_RANKS_PER_HOST=2,1",
                            "KOLO_HOSTNAME=b", "KOLO_RENDEZVOUS=10.0.0.1:7"})
    EXPECT_THAT(variables, Contains(entry));
  variables = rank_variables(placements, placements[0], 1, "10.0.0.1:7");
  EXPECT_THAT(variables, Contains("KOLO_CROSS_SIZE=1"));  // no other host has a local rank 1
}

TEST(EnvironmentTest, ThreadsAreADefault) {
  Environment environment = {"A=1"};
  add_host_variables(environment, 100, 7, 5);
  EXPECT_THAT(environment, Contains("OMP_NUM_THREADS=5"));
  EXPECT_THAT(environment, Contains("KOLO_SECRET_FD=100"));
  EXPECT_THAT(environment, Contains("KOLO_AGENT_PID=7"));
  environment = {"OMP_NUM_THREADS=3"};
  add_host_variables(environment, 100, 7, 1);
  EXPECT_THAT(environment, Contains("OMP_NUM_THREADS=3"));
  environment = {"OMP_NUM_THREADS="};
  add_host_variables(environment, 100, 7, 1);
  EXPECT_THAT(environment, Contains("OMP_NUM_THREADS=1"));
}

}  // namespace
}  // namespace kolo::launch

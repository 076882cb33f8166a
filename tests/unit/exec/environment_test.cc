#include "exec/environment.h"

#include <gmock/gmock.h>

namespace kolo::exec {
namespace {

using ::testing::ElementsAre;

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

TEST(EnvironmentTest, DefaultsDoNotReplaceValues) {
  Environment environment = {"A=1", "B="};
  add_default(environment, "A=2");
  add_default(environment, "B=2");
  add_default(environment, "C=2");
  EXPECT_THAT(environment, ElementsAre("A=1", "B=2", "C=2"));
}

}  // namespace
}  // namespace kolo::exec

#include "launch/slurm.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/files.h"
#include "kolo/error.h"

namespace kolo::launch {
namespace {

using ::testing::ElementsAre;

TEST(SlurmTest, Counts) {
  EXPECT_THAT(parse_slurm_counts("2"), ElementsAre(2));
  EXPECT_THAT(parse_slurm_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(parse_slurm_counts("72,4(x2)"), ElementsAre(72, 4, 4));
  for (const char* wrong : {"", "x", "2,", ",2", "2(x)", "2(x2", "2(2)", "0", "2 3", "2(x2)3"})
    EXPECT_THROW(parse_slurm_counts(wrong), Error) << wrong;
  EXPECT_EQ(parse_slurm_counts("1(x1000000)").size(), 1'000'000U);
  EXPECT_THROW(parse_slurm_counts("1(x1000000),1"), Error);
}

class SlurmHostsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A scontrol of our own in front of PATH.
    write_file_atomically(dir_.path() / "scontrol",
                          "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-2]' ] || exit 1\n"
                          "echo n1; echo n2\n",
                          0755);
    path_ = environment("PATH").value_or("/usr/bin:/bin");
    ::setenv("PATH", (dir_.path().string() + ":" + path_).c_str(), 1);
    ::setenv("SLURM_JOB_ID", "7", 1);
    ::setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const char* name :
         {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"})
      ::unsetenv(name);
  }
  TempDir dir_;
  std::string path_;
};

TEST_F(SlurmHostsTest, AreThoseOfTheAllocation) {
  EXPECT_EQ(*slurm_hosts(), (std::vector<Host>{{"n1", 1}, {"n2", 1}}));
  ::setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2)", 1);
  EXPECT_EQ(*slurm_hosts(), (std::vector<Host>{{"n1", 8}, {"n2", 8}}));
  ::setenv("SLURM_TASKS_PER_NODE", "2,1", 1);
  EXPECT_EQ(*slurm_hosts(), (std::vector<Host>{{"n1", 2}, {"n2", 1}}));
}

TEST_F(SlurmHostsTest, AreSaidToBeUnknownWhenSlurmDoesNotTell) {
  ::setenv("SLURM_TASKS_PER_NODE", "2(x3)", 1);
  EXPECT_THROW(slurm_hosts(), Error);
  ::unsetenv("SLURM_TASKS_PER_NODE");
  ::setenv("SLURM_JOB_NODELIST", "other", 1);
  try {
    slurm_hosts();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(slurm_hosts(), std::nullopt);
}

}  // namespace
}  // namespace kolo::launch

#include "launch/mpirun.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>

namespace kolo::launch {
namespace {

using ::testing::Contains;
using ::testing::Not;

ParallelJob job() {
  ParallelJob job;
  job.argv = {"./train", "--x", "a b"};
  job.placements = {{"a", 0, 2}, {"b", 2, 1}};
  job.environment = {"KOLO_TRANSPORT=mpi", "PASSWORD=hidden"};
  job.network_interface = "eth7";
  return job;
}

std::string after(const std::vector<std::string>& argv, const std::string& option) {
  auto found = std::find(argv.begin(), argv.end(), option);
  return found == argv.end() ? "" : *(found + 1);
}

TEST(MpirunTest, OpenMpi) {
  const auto argv = mpirun_command(job(), MpiFlavour::openmpi);
  EXPECT_EQ(after(argv, "-np"), "3");
  EXPECT_EQ(after(argv, "-H"), "a:2,b:1");
  EXPECT_EQ(after(argv, "btl_tcp_if_include"), "eth7");
  EXPECT_EQ(std::vector<std::string>(argv.end() - 3, argv.end()), job().argv);
}

TEST(MpirunTest, Mpich) {
  const auto argv = mpirun_command(job(), MpiFlavour::mpich);
  EXPECT_EQ(after(argv, "-np"), "3");
  EXPECT_EQ(after(argv, "-hosts"), "a:2,b:1");
  EXPECT_EQ(after(argv, "-iface"), "eth7");
  EXPECT_EQ(std::vector<std::string>(argv.end() - 3, argv.end()), job().argv);
}

TEST(MpirunTest, ValuesOfVariablesAreNotOnTheCommandLine) {
  for (MpiFlavour flavour : {MpiFlavour::openmpi, MpiFlavour::mpich}) {
    std::string line;
    for (const auto& word : mpirun_command(job(), flavour)) line += word + " ";
    EXPECT_NE(line.find("PASSWORD"), std::string::npos);
    EXPECT_EQ(line.find("hidden"), std::string::npos);
  }
}

}  // namespace
}  // namespace kolo::launch

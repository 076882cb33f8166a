#include "launch/environment.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo::launch {
namespace {

using ::testing::Contains;

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

}  // namespace
}  // namespace kolo::launch

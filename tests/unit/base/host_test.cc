// The machine: its name, its boot, its instruction sets.
#include "base/host.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cpu.h"
#include "base/subprocess.h"

namespace kolo {
namespace {

TEST(HostTest, NameIsTheOneThatUnamePrints) {
  const auto said = run_command({"uname", "-n"}, Deadline::after(std::chrono::seconds(10)));
  EXPECT_EQ(host_name() + "\n", said.output);
}

TEST(HostTest, TheUserIsTheOneThatIdPrints) {
  const auto said = run_command({"id", "-un"}, Deadline::after(std::chrono::seconds(10)));
  EXPECT_EQ(user_name() + "\n", said.output);
}

TEST(HostTest, IdentityIsTheNameAndTheBoot) {
  const std::string identity = host_identity();
  EXPECT_TRUE(identity.starts_with(host_name() + " "));
  EXPECT_GT(identity.size(), host_name().size() + 1);
  EXPECT_EQ(identity, host_identity());
}

TEST(CpuTest, UsableInstructionSetsRiseFromTheBaselineToTheBest) {
  const auto sets = usable_instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), InstructionSet::baseline);
  EXPECT_EQ(sets.back(), best_instruction_set());
  EXPECT_TRUE(std::is_sorted(sets.begin(), sets.end()));
}

}  // namespace
}  // namespace kolo

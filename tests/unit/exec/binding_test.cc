#include "exec/binding.h"

#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo::exec {
namespace {

TEST(BindingTest, Names) {
  EXPECT_EQ(parse_bind_to("core"), BindTo::core);
  EXPECT_EQ(parse_bind_to("socket"), BindTo::socket);
  EXPECT_EQ(parse_bind_to("none"), BindTo::none);
  EXPECT_THROW(parse_bind_to("Core"), Error);
}

TEST(BindingTest, EveryRankGetsProcessorsThatItMayUse) {
  EXPECT_TRUE(processors_for_ranks(BindTo::none, 4).empty());
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (BindTo kind : {BindTo::core, BindTo::socket}) {
    const auto sets = processors_for_ranks(kind, 5);
    ASSERT_EQ(sets.size(), 5U);
    for (const auto& set : sets) {
      EXPECT_GE(CPU_COUNT(&set), 1);
      cpu_set_t both;
      CPU_AND(&both, &set, &allowed);
      EXPECT_TRUE(CPU_EQUAL(&both, &set));
    }
  }
}

TEST(BindingTest, ThreadsOfARank) {
  EXPECT_EQ(threads_for_rank(std::nullopt, 1), usable_processors());
  EXPECT_EQ(threads_for_rank(std::nullopt, 1000), 1);
  cpu_set_t three;
  CPU_ZERO(&three);
  for (int cpu : {0, 5, 7}) CPU_SET(cpu, &three);
  EXPECT_EQ(threads_for_rank(three, 1000), 3);
}

TEST(BindingTest, CoresAreDistinctAsLongAsTheyLast) {
  if (usable_processors() < 2) GTEST_SKIP() << "one processor";
  const auto sets = processors_for_ranks(BindTo::core, usable_processors() + 1);
  const bool has_two_cores = !CPU_EQUAL(&sets[0], &sets[1]);
  if (!has_two_cores) GTEST_SKIP() << "one core with several threads";
  cpu_set_t both;
  CPU_AND(&both, &sets[0], &sets[1]);
  EXPECT_EQ(CPU_COUNT(&both), 0);
}

}  // namespace
}  // namespace kolo::exec

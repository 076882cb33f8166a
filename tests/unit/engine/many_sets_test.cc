// Process sets that come and go leave nothing behind. KOLO_TEST_SCALE=250 makes a hundred thousand.
#include <gtest/gtest.h>
#include <sched.h>

#include "kolo/engine.h"
#include "support/footprint.h"
#include "support/thread_ranks.h"

namespace kolo::test {
namespace {

TEST(ManySets, LeaveNothingBehind) {
  const int half = std::max(50, scaled(200));
  Footprint before, after;
  ThreadRanks ranks({.host_of_rank = {0, 0}, .limit = std::chrono::hours(1)});
  ranks.run([&](Communicator& world) {
    Engine engine(world);
    const auto come_and_go = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const ProcessSetId set =
            engine.add_process_set(i % 2 == 0 ? std::vector{1, 0} : std::vector{0});
        if (engine.is_member(set)) engine.barrier(set);
        ASSERT_TRUE(engine.remove_process_set(set));
      }
      engine.barrier();
    };
    come_and_go(half);
    if (world.rank() == 0) before = Footprint::now();
    engine.barrier();
    come_and_go(half);
    if (world.rank() == 0) after = Footprint::now();
    engine.barrier();
  });
  const std::string text = after.against(before, 2L * half, "process sets");
  fmt::print("{}\n", text);
  EXPECT_EQ(after.descriptors, before.descriptors) << text;
  EXPECT_LT(after.bytes, before.bytes + (4L << 20)) << text;
}

// A port stays taken for a minute after its connection was closed, and a host has 28,000 of them.
TEST(ManySets, TakeNoPortsOnOneHost) {
  // No interface of a new network namespace is up, not even the loopback.
  if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces are not permitted here";
  ThreadRanks ranks({.host_of_rank = {0, 0, 0}, .limit = std::chrono::seconds(30)});
  ranks.run([&](Communicator& world) {
    Engine engine(world);
    const ProcessSetId set = engine.add_process_set({2, 0});
    if (engine.is_member(set)) engine.barrier(set);
    EXPECT_TRUE(engine.remove_process_set(set));
    engine.barrier();
  });
}

}  // namespace
}  // namespace kolo::test

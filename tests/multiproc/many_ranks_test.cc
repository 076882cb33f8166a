// More ranks than cores, and random sequences on forked ranks.
#include <fmt/format.h>

#include "multiproc/survivors.h"
#include "support/random_operations.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

TEST(ManyRanks, EightRanksFinishSmallAndLargeOperations) {
  const int small = scaled(2000), large = scaled(50);
  ProcessRanks ranks({.host_of_rank = std::vector<int>(8, 0)}, [&](ProcessRank& me) {
    Context context(me.options(60s));
    Communicator& comm = context.world();
    const std::int64_t start = now_ns();
    for (int i = 0; i < small; ++i)
      if (comm.allreduce(i, ReduceOp::sum) != 8 * i) return std::string("wrong small sum");
    const std::int64_t middle = now_ns();
    std::vector<float> foreign(1 << 20);
    auto own = comm.allocate<float>(1 << 20);
    for (int i = 0; i < large; ++i) {
      std::fill(foreign.begin(), foreign.end(), static_cast<float>(i));
      comm.allreduce(std::span(foreign), ReduceOp::sum);
      if (foreign.back() != 8.0F * static_cast<float>(i)) return std::string("wrong large sum");
      std::fill(own.begin(), own.end(), 1.0F);
      comm.allreduce(own.span(), ReduceOp::sum);
      if (own[12345] != 8.0F) return std::string("wrong own sum");
    }
    if (me.rank() == 0)
      std::printf("    8 ranks: %.0f us a small operation, %.1f ms a pair of large ones\n",
                  static_cast<double>(middle - start) / 1e3 / small,
                  static_cast<double>(now_ns() - middle) / 1e6 / large);
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.result, "done") << outcome.error;
}

class RandomProcesses : public testing::TestWithParam<int> {};

TEST_P(RandomProcesses, AllRanksAgree) {
  const int count = scaled(10'000);
  std::string first;
  for (int repeat = 0; repeat < 2; ++repeat) {
    ProcessRanks ranks({.host_of_rank = std::vector<int>(GetParam(), 0)}, [&](ProcessRank& me) {
      Context context(me.options(60s));
      return fmt::format("{:x}", run_random_operations(context.world(), 7, count));
    });
    for (const Outcome& outcome : ranks.finish()) {
      ASSERT_TRUE(outcome.has_result) << outcome.error;
      if (first.empty()) first = outcome.result;
      EXPECT_EQ(outcome.result, first);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RandomProcesses, testing::Values(2, 4));

}  // namespace
}  // namespace kolo::test

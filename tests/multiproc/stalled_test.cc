// A rank is stopped, as in a debugger, past the timeout.
#include <csignal>

#include "multiproc/survivors.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

// Long enough that a busy machine does not give up a rank that is only late.
constexpr std::chrono::milliseconds kTimeout = kSanitized ? 5s : 1500ms;

class Stalled : public testing::TestWithParam<Operation> {
 protected:
  void stop_in_the_middle(std::vector<int> hosts, const std::string& transport, int victim) {
    const Operation& operation = GetParam();
    ProcessRanks ranks({.host_of_rank = hosts}, [&](ProcessRank& me) {
      Context context(me.options(kTimeout, transport));
      operation.call(context.world());
      me.reached("working");
      return repeat_until_lost([&] { operation.call(context.world()); });
    });
    ranks.await_all("working");
    const std::int64_t stopped_at = now_ns();
    ranks.signal(victim, SIGSTOP);
    for (int r = 0; r < ranks.size(); ++r)
      if (r != victim) ranks.await_end(r);
    // Once it goes on, it learns that it was given up or that the others have left.
    ranks.signal(victim, SIGCONT);
    const auto outcomes = ranks.finish();
    for (int r = 0; r < ranks.size(); ++r) {
      SCOPED_TRACE(testing::Message() << "rank " << r << ", rank " << victim << " was stopped");
      if (r == victim) {
        EXPECT_TRUE(outcomes[r].result.starts_with("peer_lost of")) << outcomes[r].result;
      } else {
        // Point to point, a rank that waits for one which itself waits for the stopped one may name
        // either.
        const int named = operation.name == "send_recv" ? lost_rank(outcomes[r]) : victim;
        expect_lost(outcomes[r], named, stopped_at, kTimeout + kPatience);
      }
    }
  }
};

TEST_P(Stalled, OneOfFour) { stop_in_the_middle({0, 0, 0, 0}, "auto", 2); }

INSTANTIATE_TEST_SUITE_P(During, Stalled, testing::ValuesIn(every_operation()),
                         [](const auto& info) { return name_of(info.param); });

// Two hosts are pretended, with TCP between them.
class StalledAcrossHosts : public Stalled {};

TEST_P(StalledAcrossHosts, OneOfFour) {
  if (std::string why; !wire_is_available(&why)) GTEST_SKIP() << why;
  stop_in_the_middle({0, 0, 1, 1}, "auto", 3);
}

std::vector<Operation> some_operations() {
  std::vector<Operation> some;
  for (const Operation& operation : every_operation())
    for (const char* name : {"barrier", "allreduce_foreign", "allgather", "adasum"})
      if (operation.name == name) some.push_back(operation);
  return some;
}

INSTANTIATE_TEST_SUITE_P(During, StalledAcrossHosts, testing::ValuesIn(some_operations()),
                         [](const auto& info) { return name_of(info.param); });

// A pause that is shorter than the timeout disturbs nobody.
TEST(StalledShortly, IsForgiven) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [](ProcessRank& me) {
    Context context(me.options(60s));
    std::vector<float> data(100'000, 1.0F);
    for (int i = 0; i < 200; ++i) {
      if (i == 50) me.wait_for_go("stop me");
      context.world().allreduce(std::span(data));
    }
    return std::to_string(data[99'999]);
  });
  ranks.await_all("stop me");
  ranks.signal(1, SIGSTOP);
  for (int r = 0; r < 3; ++r) ranks.go(r);
  ranks.signal(1, SIGCONT);
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.result, std::to_string(1.0F));
}

}  // namespace
}  // namespace kolo::test

// A rank is killed while the others are inside an operation.
#include <csignal>

#include "multiproc/survivors.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

class Killed : public testing::TestWithParam<Operation> {
 protected:
  // All ranks repeat the operation; at an arbitrary moment one is killed. Each survivor must name
  // it, and say so again at once when it tries another operation.
  void kill_in_the_middle(std::vector<int> hosts, const std::string& transport, int victim) {
    const Operation& operation = GetParam();
    ProcessRanks ranks({.host_of_rank = hosts}, [&](ProcessRank& me) {
      Context context(me.options(60s, transport));
      for (int i = 0; i < 3; ++i) operation.call(context.world());
      me.reached("working");
      std::string first = repeat_until_lost([&] { operation.call(context.world()); });
      const std::int64_t before = now_ns();
      const std::string again = lost_in([&] { context.world().barrier(); });
      if (!again.starts_with("peer_lost of " + std::to_string(victim)))
        return "the next operation: " + again;
      if (now_ns() - before > kPatience / 1ns) return std::string("the next operation was slow");
      return first;
    });
    ranks.await_all("working");
    const std::int64_t killed_at = now_ns();
    ranks.signal(victim, SIGKILL);
    check(ranks.finish(), victim, killed_at);
  }

  // The victim never comes to the operation.
  void kill_before(std::vector<int> hosts, const std::string& transport, int victim) {
    const Operation& operation = GetParam();
    ProcessRanks ranks({.host_of_rank = hosts}, [&](ProcessRank& me) {
      Context context(me.options(60s, transport));
      operation.call(context.world());
      if (me.rank() == victim) me.wait_to_be_killed("parked");
      me.reached("waiting");
      return repeat_until_lost([&] { operation.call(context.world()); });
    });
    for (int r = 0; r < ranks.size(); ++r) ranks.await(r, r == victim ? "parked" : "waiting");
    const std::int64_t killed_at = now_ns();
    ranks.signal(victim, SIGKILL);
    check(ranks.finish(), victim, killed_at);
  }

 private:
  static void check(const std::vector<Outcome>& outcomes, int victim, std::int64_t killed_at) {
    for (int r = 0; r < static_cast<int>(outcomes.size()); ++r) {
      SCOPED_TRACE(testing::Message() << "rank " << r << ", rank " << victim << " was killed");
      if (r == victim) {
        EXPECT_TRUE(outcomes[r].signalled && outcomes[r].status == SIGKILL);
      } else {
        expect_lost(outcomes[r], victim, killed_at, kPatience);
      }
    }
  }
};

TEST_P(Killed, InTheMiddleOfTwo) { kill_in_the_middle({0, 0}, "auto", 1); }

TEST_P(Killed, InTheMiddleOfFour) {
  kill_in_the_middle({0, 0, 0, 0}, "auto", 0);
  kill_in_the_middle({0, 0, 0, 0}, "auto", 2);
}

TEST_P(Killed, BeforeItCame) { kill_before({0, 0, 0}, "auto", 1); }

// Two hosts are pretended, with two ranks each, and TCP between them.
TEST_P(Killed, AcrossHosts) {
  if (std::string why; !wire_is_available(&why)) GTEST_SKIP() << why;
  kill_in_the_middle({0, 0, 1, 1}, "auto", 3);
  kill_in_the_middle({0, 0, 1, 1}, "auto", 0);
}

TEST_P(Killed, OverAFlatWire) {
  if (std::string why; !wire_is_available(&why)) GTEST_SKIP() << why;
  kill_in_the_middle({0, 0, 0}, "tcp", 1);
}

INSTANTIATE_TEST_SUITE_P(During, Killed, testing::ValuesIn(every_operation()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace kolo::test

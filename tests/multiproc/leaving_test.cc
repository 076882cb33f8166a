// Ranks that leave early or never come, groups that go on without them, and what is left behind.
#include <dirent.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <set>

#include "kolo/context.h"
#include "kolo/error.h"
#include "multiproc/survivors.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  DIR* directory = ::opendir("/dev/shm");
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) names.insert(entry->d_name);
  ::closedir(directory);
  return names;
}

// Names that appeared since `before` and do not go away. Other jobs of this machine may have theirs
// for a moment.
std::set<std::string> left_behind(const std::set<std::string>& before) {
  std::set<std::string> fresh = shared_memory_files();
  for (const std::string& name : before) fresh.erase(name);
  const auto deadline = Deadline::after(10s);
  while (!fresh.empty() && !deadline.passed()) {
    const std::set<std::string> now = shared_memory_files();
    std::erase_if(fresh, [&](const std::string& name) { return !now.contains(name); });
  }
  return fresh;
}

// Ends rank 1 in some way while the others wait for it.
void one_ends(const std::function<void(ProcessRank&)>& end, int status) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    init(me.options(60s));
    (void)world().allreduce(1);
    if (me.rank() == 1) {
      end(me);
      return std::string("left");
    }
    me.reached("waiting");
    return repeat_until_lost([&] { (void)world().allreduce(1); });
  });
  ranks.await_end(1);
  const std::int64_t ended_at = now_ns();
  const auto outcomes = ranks.finish();
  EXPECT_EQ(outcomes[1].status, status);
  EXPECT_FALSE(outcomes[1].signalled);
  for (int r : {0, 2}) expect_lost(outcomes[r], 1, ended_at, kPatience);
}

TEST(Leaving, ExitWithoutShutdown) {
  one_ends([](ProcessRank&) { ::_exit(0); }, 0);
}
TEST(Leaving, ExitWithAStatus) {
  one_ends([](ProcessRank&) { ::_exit(3); }, 3);
}
TEST(Leaving, ExitThatRunsDestructors) {
  one_ends([](ProcessRank&) { std::exit(4); }, 4);
}
TEST(Leaving, Shutdown) {
  one_ends([](ProcessRank&) { shutdown(); }, 0);
}

// The process lives on, but has left the job.
TEST(Leaving, ShutdownOfAProcessThatStays) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    init(me.options(60s));
    (void)world().allreduce(1);
    if (me.rank() == 1) {
      shutdown();
      me.wait_for_go("left");
      return std::string("left");
    }
    return repeat_until_lost([&] { (void)world().allreduce(1); });
  });
  ranks.await(1, "left");
  const std::int64_t left_at = now_ns();
  for (int r : {0, 2}) ranks.await_end(r);
  ranks.go(1);
  const auto outcomes = ranks.finish();
  for (int r : {0, 2}) expect_lost(outcomes[r], 1, left_at, kPatience);
}

// All leave after the same operation, in whatever order: nobody is told of a loss.
TEST(Leaving, AfterTheLastOperationNobodyIsMissed) {
  for (int repeat = 0; repeat < scaled(50); ++repeat) {
    ProcessRanks ranks({.host_of_rank = {0, 0, 0, 0}}, [&](ProcessRank& me) {
      Context context(me.options(60s));
      std::vector<float> data(repeat % 2 == 0 ? 10 : 40'000, 1.0F);
      context.world().allreduce(std::span(data), ReduceOp::sum);
      if (me.rank() % 2 == 0) ::_exit(data.back() == 4.0F ? 0 : 9);
      return std::to_string(data.back());
    });
    const auto outcomes = ranks.finish();
    for (int r = 0; r < 4; ++r) {
      EXPECT_EQ(outcomes[r].status, 0);
      EXPECT_EQ(outcomes[r].error, "");
    }
  }
}

TEST(Leaving, OneDiesBeforeItJoined) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    if (me.rank() == 2) ::_exit(7);
    try {
      Context context(me.options(60s));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("joined");
  });
  const auto outcomes = ranks.finish();
  for (int r : {0, 1}) {
    EXPECT_NE(outcomes[r].result.find("rank 2"), std::string::npos) << outcomes[r].result;
    EXPECT_TRUE(outcomes[r].result.starts_with("peer_lost")) << outcomes[r].result;
  }
}

TEST(Leaving, OneNeverComes) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    if (me.rank() == 0) me.wait_for_go("somewhere else");
    if (me.rank() == 0) return std::string("never came");
    try {
      Context context(me.options(1s));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("joined");
  });
  for (int r : {1, 2}) ranks.await_end(r);
  ranks.go(0);
  const auto outcomes = ranks.finish();
  const auto names_it = [&](int r) {
    return outcomes[r].result.find("rank 0") != std::string::npos;
  };
  EXPECT_TRUE(names_it(1) || names_it(2)) << outcomes[1].result << '\n' << outcomes[2].result;
  for (int r : {1, 2}) {
    // Who is slow may find that the other has given up already.
    EXPECT_TRUE(names_it(r) || outcomes[r].result.starts_with("peer_lost")) << outcomes[r].result;
    EXPECT_TRUE(outcomes[r].result.starts_with("timeout") ||
                outcomes[r].result.starts_with("peer_lost"))
        << outcomes[r].result;
  }
}

TEST(Leaving, AGroupWithoutTheVictimGoesOn) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0, 0}}, [](ProcessRank& me) {
    Context context(me.options(60s));
    auto group = context.world().subset({3, 0, 2});
    auto with_victim = context.world().subset({0, 1});
    if (me.rank() == 1) me.wait_to_be_killed("ready");
    me.wait_for_go("ready");
    // The world is broken; the group must not be, before and after this rank has noticed.
    std::vector<float> data(30'000, 1.0F);
    group->allreduce(std::span(data), ReduceOp::sum);
    const std::string lost = lost_in([&] { context.world().barrier(); });
    if (!lost.starts_with("peer_lost of 1")) return "world: " + lost;
    if (with_victim) {
      const std::string pair = lost_in([&] { with_victim->barrier(); });
      if (!pair.starts_with("peer_lost of 1")) return "pair: " + pair;
    }
    for (int i = 0; i < 500; ++i) {
      if (group->allreduce(1, ReduceOp::sum) != 3) return std::string("wrong sum");
      if (i % 100 == 0) group->allreduce(std::span(data), ReduceOp::max);
    }
    auto smaller = group->subset({1, 0});
    if (smaller != nullptr && smaller->allreduce(1, ReduceOp::sum) != 2)
      return std::string("wrong sum in the smaller group");
    return fmt::format("{}", data[0]);
  });
  ranks.await_all("ready");
  ranks.signal(1, SIGKILL);
  ranks.await_end(1);
  for (int r : {0, 2, 3}) ranks.go(r);
  const auto outcomes = ranks.finish();
  for (int r : {0, 2, 3}) EXPECT_EQ(outcomes[r].result, "3") << outcomes[r].error;
}

// peer_lost names the rank as the communicator numbers it.
TEST(Leaving, ASubsetNamesItsOwnRank) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [](ProcessRank& me) {
    Context context(me.options(60s));
    auto group = context.world().subset({2, 1});
    if (me.rank() == 0) return std::string("peer_lost of 0");
    if (me.rank() == 2) me.wait_to_be_killed("ready");
    me.wait_for_go("ready");
    return lost_in([&] { group->barrier(); });
  });
  ranks.await(1, "ready");
  ranks.await(2, "ready");
  ranks.signal(2, SIGKILL);
  ranks.go(1);
  const auto outcomes = ranks.finish();
  EXPECT_TRUE(outcomes[1].result.starts_with("peer_lost of 0")) << outcomes[1].result;
}

TEST(Leaving, TwoDieAtOnce) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0, 0, 0}}, [](ProcessRank& me) {
    Context context(me.options(60s));
    static std::vector<float> data(200'000);
    context.world().allreduce(std::span(data));
    me.reached("working");
    return repeat_until_lost([&] { context.world().allreduce(std::span(data)); });
  });
  ranks.await_all("working");
  const std::int64_t killed_at = now_ns();
  ranks.signal(1, SIGKILL);
  ranks.signal(3, SIGKILL);
  const auto outcomes = ranks.finish();
  for (int r : {0, 2, 4}) {
    const int named = outcomes[r].result.starts_with("peer_lost of 3") ? 3 : 1;
    expect_lost(outcomes[r], named, killed_at, kPatience);
  }
}

TEST(Leaving, NothingIsLeftWhenAllAreKilled) {
  const auto before = shared_memory_files();
  for (int repeat = 0; repeat < 3; ++repeat) {
    ProcessRanks ranks({.host_of_rank = {0, 0, 0, 0}}, [](ProcessRank& me) -> std::string {
      Context context(me.options(60s));
      auto own = context.world().allocate<float>(1 << 20);
      auto group = context.world().subset({0, 1, 2, 3});
      me.reached("working");
      for (;;) {
        context.world().allreduce(own.span());
        group->barrier();
      }
    });
    ranks.await_all("working");
    for (int r = 0; r < 4; ++r) ranks.signal(r, SIGKILL);
    for (const Outcome& outcome : ranks.finish()) EXPECT_TRUE(outcome.signalled);
  }
  EXPECT_EQ(left_behind(before), std::set<std::string>{});
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is still there";
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace kolo::test

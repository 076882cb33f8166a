// The engine with ranks that are processes: random work, deaths, and what an idle engine costs.
#include "kolo/engine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <numeric>
#include <thread>

#include "base/files.h"
#include "base/frames.h"
#include "base/json.h"
#include "base/secret.h"
#include "engine/messages.h"
#include "engine/star.h"
#include "kolo/error.h"
#include "kolo/random.h"
#include "multiproc/survivors.h"

namespace {
/// A child without an image of its own: leaks cannot be told there, because the threads that own
/// memory are missing.
bool is_forked_child = false;
}  // namespace

#ifdef __SANITIZE_ADDRESS__
extern "C" int __lsan_is_turned_off() { return is_forked_child ? 1 : 0; }
#endif

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

TensorArg in_place(std::vector<float>& data) {
  return {data.data(), data.data(), {static_cast<std::int64_t>(data.size())}, DataType::float32};
}

/// The same operations on every rank, submitted in an order of its own, in waves.
void random_work(Engine& engine, std::uint64_t seed) {
  Random common(seed);
  Random own = common.stream("rank", static_cast<std::uint64_t>(engine.rank()));
  const auto n = static_cast<float>(engine.size());
  for (int wave = 0; wave < scaled(30); ++wave) {
    const std::size_t count = 1 + common.below(40);
    std::vector<std::size_t> sizes(count), order(count);
    for (std::size_t i = 0; i < count; ++i) {
      sizes[i] = 1 + common.below(common.below(8) == 0 ? 200'000 : 500);
      order[i] = i;
    }
    own.shuffle(order);
    std::vector<std::vector<float>> data(count);
    std::vector<Handle> handles(count);
    for (const std::size_t i : order) {
      data[i].assign(sizes[i], static_cast<float>(i + 1));
      handles[i] = engine.allreduce_async("tensor " + std::to_string(i), in_place(data[i]),
                                          {.op = ReduceOp::sum});
      if (own.below(10) == 0) std::this_thread::yield();
    }
    own.shuffle(order);
    for (const std::size_t i : order) {
      engine.synchronize(handles[i]);
      const float expected = static_cast<float>(i + 1) * n;
      ASSERT_EQ(data[i].front(), expected);
      ASSERT_EQ(data[i].back(), expected);
    }
  }
}

class EngineProcesses : public testing::TestWithParam<int> {};

TEST_P(EngineProcesses, RandomOrders) {
  ProcessRanks ranks({.host_of_rank = std::vector<int>(static_cast<std::size_t>(GetParam()), 0)},
                     [](ProcessRank& me) {
                       Context context(me.options(30s));
                       Engine engine(context);
                       random_work(engine, 5);
                       engine.barrier();
                       return std::string("done");
                     });
  for (const Outcome& outcome : ranks.finish()) {
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.result, "done");
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineProcesses, testing::Values(1, 2, 3, 4));

void kill_one(int victim, bool while_working, const std::vector<int>& hosts) {
  ProcessRanks ranks({.host_of_rank = hosts}, [&](ProcessRank& me) {
    Context context(me.options(60s));
    Engine engine(context);
    std::vector<float> data(1000);
    engine.allreduce("x", in_place(data));
    if (me.rank() == victim && !while_working) me.wait_to_be_killed("ready");
    me.reached("ready");
    const std::string first = repeat_until_lost([&] { engine.allreduce("x", in_place(data)); });
    const std::string again = lost_in([&] { engine.allreduce("y", in_place(data)); });
    if (!again.starts_with("peer_lost of " + std::to_string(victim))) return "next: " + again;
    return first;
  });
  ranks.await_all("ready");
  const std::int64_t killed_at = now_ns();
  ranks.signal(victim, SIGKILL);
  const auto outcomes = ranks.finish();
  for (int r = 0; r < static_cast<int>(outcomes.size()); ++r)
    if (r != victim)
      expect_lost(outcomes[static_cast<std::size_t>(r)], victim, killed_at, kPatience);
}

// As the workers of a data loader do.
TEST(MultiprocEngine, AChildThatExitsIsNoRankThatLeaves) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 1}}, [&](ProcessRank& me) {
    init(me.options(60s));
    engine().barrier();
    if (me.rank() != 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        is_forked_child = true;
        std::exit(0);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      if (status != 0) return fmt::format("the child ended with status {}", status);
    }
    engine().barrier();
    return std::to_string(world().allreduce(1, ReduceOp::sum));
  });
  for (const auto& outcome : ranks.finish()) EXPECT_EQ(outcome.result, "3") << outcome.error;
}

// As a child that returns from main() does with what stands there.
TEST(MultiprocEngine, AChildThatEndsItsCopiesOfEverythingEndsNothing) {
  ProcessRanks ranks({.host_of_rank = {0, 0}}, [&](ProcessRank& me) {
    auto context = std::make_unique<Context>(me.options(60s));
    Communicator& world = context->world();
    auto engine = std::make_unique<Engine>(*context);
    auto pair = world.subset({0, 1});
    auto buffer = std::make_unique<Buffer<float>>(world.allocate<float>(10'000));
    for (float& value : buffer->span()) value = 1.0F;
    engine->barrier();
    const pid_t child = ::fork();
    if (child == 0) {
      is_forked_child = true;
      buffer.reset();
      pair.reset();
      engine.reset();
      context.reset();
      ::_exit(0);
    }
    const Deadline deadline = Deadline::after(20s);
    int status = -1;
    while (::waitpid(child, &status, WNOHANG) == 0 && !deadline.passed())
      std::this_thread::sleep_for(5ms);
    if (status != 0) {
      ::kill(child, SIGKILL);
      return fmt::format("the child ended with status {}", status);
    }
    world.barrier();
    pair->barrier();
    engine->barrier();
    world.allreduce(buffer->span(), ReduceOp::sum);
    return fmt::format("{}", (*buffer)[9'999]);
  });
  for (const auto& outcome : ranks.finish()) EXPECT_EQ(outcome.result, "2") << outcome.error;
}

TEST(EngineKilled, TheLeaderAtWork) { kill_one(0, true, {0, 0, 0}); }
TEST(EngineKilled, AMemberAtWork) { kill_one(2, true, {0, 0, 0}); }
TEST(EngineKilled, TheLeaderWhoIsWaitedFor) { kill_one(0, false, {0, 0, 0}); }
TEST(EngineKilled, AMemberWhoIsWaitedFor) { kill_one(1, false, {0, 0, 0}); }
TEST(EngineKilled, AcrossHosts) {
  if (std::string why; !wire_is_available(&why)) GTEST_SKIP() << why;
  kill_one(3, false, {0, 0, 1, 1});
}

TEST(EngineIdle, UsesNoProcessorTime) {
  ProcessRanks ranks({.host_of_rank = {0, 0}}, [](ProcessRank& me) {
    Context context(me.options(30s));
    Engine engine(context);
    std::vector<float> data(10);
    engine.allreduce("x", in_place(data));
    context.world().barrier();
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    std::this_thread::sleep_for(1s);  // being idle is what is measured
    ::getrusage(RUSAGE_SELF, &after);
    context.world().barrier();
    const auto microseconds = [](const rusage& used) {
      return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 + used.ru_utime.tv_usec +
             used.ru_stime.tv_usec;
    };
    const auto switches = after.ru_nvcsw - before.ru_nvcsw;
    EXPECT_LT(microseconds(after) - microseconds(before), kSanitized ? 20'000 : 5'000);
    // ThreadSanitizer has a thread of its own that wakes ten times a second.
    if (!kThreadSanitized) {
      EXPECT_LE(switches, 3);
    }
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.error, "");
}

TEST(EngineTimeline, HoldsEveryRankAndIsValidAtEveryInstant) {
  const TempDir directory;
  const std::string path = (directory.path() / "trace.json").string();
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    Context context(me.options(30s));
    Engine engine(context);
    std::vector<float> data(100);
    engine.allreduce("before", in_place(data));
    for (const char* mark : {"first", "second"}) {
      engine.start_timeline(path);
      for (int i = 0; i < 300; ++i) {
        engine.allreduce(fmt::format("\"{}\" {}", mark, i % 10), in_place(data));
        if (me.rank() == 0 && i % 20 == 0) {
          EXPECT_TRUE(parse_json(read_file(path), path).is_array());
        }
      }
      engine.stop_timeline();
      engine.allreduce("not recorded", in_place(data));
    }
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.error, "");
  const Json trace = parse_json(read_file(path), path);
  std::map<int, int> reduced, queued;
  for (const Json& event : trace) {
    if (event.at("ph") != "X") continue;
    EXPECT_TRUE(event.at("tid").get<std::string>().starts_with("allreduce.\"second\"")) << event;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    auto& count = event.at("name") == "NEGOTIATE_ALLREDUCE" ? queued : reduced;
    ++count[event.at("pid").get<int>()];
  }
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(reduced[r], 300);
    EXPECT_EQ(queued[r], 300);
  }
}

// A group of tensors is packed into one buffer, reduced there and unpacked.
TEST(EngineTimeline, TellsInHorovodsWordsWhenOperationsAreReadyReducedAndCopied) {
  const TempDir directory;
  const std::string path = (directory.path() / "trace.json").string();
  ProcessRanks ranks({.host_of_rank = {0, 0}}, [&](ProcessRank& me) {
    Context context(me.options(30s));
    ::setenv("KOLO_TIMELINE_MARK_CYCLES", "1", 1);
    Engine engine(context, {.timeline = path});
    std::vector<float> a(100), b(5000);
    engine.synchronize(engine.grouped_allreduce_async("pair", {in_place(a), in_place(b)}));
    engine.allreduce("single", in_place(a));
    engine.stop_timeline();
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.error, "");
  struct Row {
    std::map<std::string, std::vector<std::pair<double, double>>> spans;  // begin and end
  };
  std::map<std::pair<int, std::string>, Row> rows;
  for (const Json& event : parse_json(read_file(path), path)) {
    if (event.at("ph") == "M") continue;
    const double begin = event.at("ts").get<double>();
    rows[{event.at("pid").get<int>(), event.at("tid").get<std::string>()}]
        .spans[event.at("name").get<std::string>()]
        .emplace_back(begin, begin + event.value("dur", 0.0));
  }
  constexpr double kRounding = 0.01;  // times are written with three digits
  for (int r = 0; r < 2; ++r) {
    for (const char* name : {"pair", "single"}) {
      SCOPED_TRACE(testing::Message() << name << " of rank " << r);
      auto& spans = rows[{r, fmt::format("allreduce.{}", name)}].spans;
      ASSERT_EQ(spans["ready"].size(), 1U);
      ASSERT_EQ(spans["NEGOTIATE_ALLREDUCE"].size(), 1U);
      ASSERT_EQ(spans["ALLREDUCE"].size(), 1U);
      const auto [begin, end] = spans["ALLREDUCE"][0];
      EXPECT_NEAR(spans["ready"][0].first, spans["NEGOTIATE_ALLREDUCE"][0].first, kRounding);
      EXPECT_NEAR(spans["NEGOTIATE_ALLREDUCE"][0].second, begin, kRounding);
      for (const char* copy : {"MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"}) {
        ASSERT_EQ(spans[copy].size(), name == std::string("pair") ? 1U : 0U);
        for (const auto& copied : spans[copy]) {
          EXPECT_GE(copied.first, begin - kRounding);
          EXPECT_LE(copied.second, end + kRounding);
        }
      }
    }
    auto& cycles = rows[{r, "cycles"}].spans["CYCLE_START"];
    EXPECT_GE(cycles.size(), 2U);
  }
}

/// A rank that dies between the introduction of a star and its connections. Member 0 is its leader.
void kill_when_the_star_begins(const std::vector<int>& hosts, const std::string& transport,
                               int victim) {
  ProcessRanks ranks({.host_of_rank = hosts}, [&](ProcessRank& me) {
    Context context(me.options(60s, transport));
    if (me.rank() != victim) {
      me.reached("waiting");
      return lost_in([&] { runtime::Star(context.world(), Deadline::after(60s)); });
    }
    // What the star does first, and nothing else: an address at which nobody listens.
    std::string introduction =
        ByteWriter().raw(Secret::random().bytes()).strings({"127.0.0.1:1"}).bytes();
    std::uint64_t length = introduction.size();
    context.world().broadcast(&length, sizeof length, DataType::uint8, 0);
    introduction.resize(length);
    context.world().broadcast(introduction.data(), length, DataType::uint8, 0);
    me.wait_to_be_killed("parked");
    return std::string();
  });
  for (int r = 0; r < ranks.size(); ++r) ranks.await(r, r == victim ? "parked" : "waiting");
  const std::int64_t killed_at = now_ns();
  ranks.signal(victim, SIGKILL);
  const auto outcomes = ranks.finish();
  for (int r = 0; r < ranks.size(); ++r)
    if (r != victim)
      expect_lost(outcomes[static_cast<std::size_t>(r)], victim, killed_at, kPatience);
}

TEST(EngineStart, ALeaderThatDiesIsNotWaitedFor) { kill_when_the_star_begins({0, 0}, "shm", 0); }

TEST(EngineStart, AMemberThatDiesIsNotWaitedFor) { kill_when_the_star_begins({0, 0}, "shm", 1); }

TEST(EngineStart, ALeaderOnAnotherHostThatDiesIsNotWaitedFor) {
  std::string why;
  if (!wire_is_available(&why)) GTEST_SKIP() << why;
  kill_when_the_star_begins({0, 1}, "", 0);
}

/// A rank that keeps the connections of an engine, but sends what is no message of one. What it
/// makes is what Engine makes, in the same order.
void send_nonsense(ProcessRank& me, Context& context) {
  std::vector<int> all(static_cast<std::size_t>(me.size()));
  std::iota(all.begin(), all.end(), 0);
  const auto control = context.world().subset(all);
  const auto data = control->subset(all);
  const auto of_callers = data->subset(all);
  runtime::Star star(*data, Deadline::after(30s));
  me.wait_for_go("connected");
  star.send(0, encode_frame(static_cast<std::uint8_t>(runtime::MessageType::submit), "nonsense"));
  star.flush(Deadline::after(10s));
  me.wait_for_go("sent");
}

/// What an operation throws.
std::string error_of(Engine& engine, const std::string& name) {
  std::vector<float> data(10);
  try {
    engine.allreduce(name, in_place(data));
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.message());
  }
  return "nothing";
}

// The thread of the leader, who cannot read what came. The leader lives, and so does whoever sent
// it.
TEST(EngineThread, WhatGoesWrongInItEndsTheSetOnEveryRank) {
  ProcessRanks ranks({.host_of_rank = {0, 0, 0}}, [&](ProcessRank& me) {
    Context context(me.options(40s));
    if (me.rank() == 2) {
      send_nonsense(me, context);
      return std::string();
    }
    Engine engine(context);
    me.reached("submits");
    const std::string first = error_of(engine, "under way"), second = error_of(engine, "later");
    me.wait_for_go("told");  // with its engine
    return second == first ? first : fmt::format("{} and then {}", first, second);
  });
  ranks.await(0, "submits");
  ranks.await(1, "submits");
  ranks.await(2, "connected");
  ranks.go(2);
  ranks.await(0, "told");
  ranks.await(1, "told");
  for (int r = 0; r < 3; ++r) ranks.go(r);
  const auto outcomes = ranks.finish();
  EXPECT_TRUE(outcomes[0].result.starts_with("corruption: "))
      << outcomes[0].result << outcomes[0].error;
  EXPECT_EQ(outcomes[0].result.find("and then"), std::string::npos) << outcomes[0].result;
  EXPECT_EQ(outcomes[1].result,
            "peer_lost: engine: rank 0 closed its connection: it has ended or left")
      << outcomes[1].error;
  EXPECT_EQ(outcomes[2].error, "");
}

TEST(EngineDefault, BelongsToTheDefaultContext) {
  ProcessRanks ranks({.host_of_rank = {0, 0}}, [](ProcessRank& me) {
    EXPECT_THROW((void)engine(), Error);
    init(me.options(30s));
    std::vector<float> data(10, 1.0F);
    engine().allreduce("x", in_place(data), {.op = ReduceOp::sum});
    EXPECT_EQ(data[0], 2.0F);
    EXPECT_EQ(world().allreduce(1, ReduceOp::sum), 2);
    world().barrier();
    shutdown();
    EXPECT_THROW((void)engine(), Error);
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) EXPECT_EQ(outcome.error, "");
}

}  // namespace
}  // namespace kolo::test

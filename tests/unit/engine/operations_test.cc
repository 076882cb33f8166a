// The engine with ranks that are threads: every operation, in orders that differ between ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <numeric>

#include "base/env.h"
#include "base/files.h"
#include "engine/operation.h"
#include "engine/star.h"
#include "engine/timeline.h"
#include "kolo/engine.h"
#include "kolo/random.h"
#include "support/arrangement.h"
#include "support/thread_ranks.h"

namespace kolo::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorArg in_place(std::vector<float>& data) {
  return {data.data(), data.data(), {static_cast<std::int64_t>(data.size())}, DataType::float32};
}

ErrorCode code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.message();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

class EngineSizes : public testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(Engine&)>& body, std::string transport = "auto",
           std::vector<int> hosts = {}) {
    if (hosts.empty()) hosts.assign(static_cast<std::size_t>(GetParam()), 0);
    ThreadRanks ranks({.host_of_rank = hosts, .transport = std::move(transport)});
    ranks.run([&](Communicator& world) {
      Engine engine(world);
      body(engine);
      engine.barrier();
    });
  }
};

TEST_P(EngineSizes, EveryOperation) {
  run([](Engine& engine) {
    const int n = engine.size();
    const int me = engine.rank();
    std::vector<float> sum(10, static_cast<float>(me + 1));
    engine.allreduce("sum", in_place(sum), {.op = ReduceOp::sum});
    EXPECT_EQ(sum[9], static_cast<float>(n * (n + 1) / 2));

    std::vector<std::int32_t> mine(static_cast<std::size_t>(me + 1) * 2, me), all;
    const auto counts = engine.synchronize(engine.allgather_async(
        "rows", mine.data(), {me + 1, 2}, DataType::int32, Communicator::into(all)));
    EXPECT_EQ(counts[static_cast<std::size_t>(n - 1)], static_cast<std::size_t>(n) * 2);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(n * (n + 1)));
    EXPECT_EQ(all.back(), n - 1);

    std::vector<double> shown(5, me);
    engine.synchronize(
        engine.broadcast_async("shown", shown.data(), {5}, DataType::float64, n - 1));
    EXPECT_EQ(shown[4], n - 1);

    std::vector<std::int64_t> to_all(static_cast<std::size_t>(n), me), from_all;
    const auto rows = engine.synchronize(engine.alltoall_async(
        "exchanged", to_all.data(), {n}, DataType::int64, {}, Communicator::into(from_all)));
    EXPECT_EQ(rows, std::vector<std::size_t>(static_cast<std::size_t>(n), 1));
    for (int r = 0; r < n; ++r) EXPECT_EQ(from_all[static_cast<std::size_t>(r)], r);

    std::vector<float> parts(static_cast<std::size_t>(n) * 3), part(3);
    std::iota(parts.begin(), parts.end(), 0.0F);
    engine.synchronize(engine.reducescatter_async(
        "part", {parts.data(), part.data(), {n, 3}, DataType::float32}, {.op = ReduceOp::sum}));
    EXPECT_EQ(part[1], static_cast<float>(n * (me * 3 + 1)));
    engine.barrier();
  });
}

TEST_P(EngineSizes, AnyOrderAnyFusion) {
  run([](Engine& engine) {
    constexpr int kOperations = 60;
    for (int round = 0; round < 5; ++round) {
      std::vector<int> order(kOperations);
      std::iota(order.begin(), order.end(), 0);
      // Another order on every rank, another size for every operation.
      Random(static_cast<std::uint64_t>(round * 100 + engine.rank())).shuffle(order);
      std::vector<std::vector<float>> data(kOperations);
      std::vector<Handle> handles(kOperations);
      for (const int i : order) {
        data[static_cast<std::size_t>(i)].assign(static_cast<std::size_t>(1 + i * i * 3),
                                                 static_cast<float>(engine.rank() + i));
        handles[static_cast<std::size_t>(i)] = engine.allreduce_async(
            "t" + std::to_string(i), in_place(data[static_cast<std::size_t>(i)]),
            {.op = i % 3 == 0 ? ReduceOp::max : ReduceOp::sum});
      }
      for (int i = kOperations - 1; i >= 0; --i) {
        engine.synchronize(handles[static_cast<std::size_t>(i)]);
        EXPECT_TRUE(engine.poll(handles[static_cast<std::size_t>(i)]));
        const int n = engine.size();
        const auto expected = static_cast<float>(i % 3 == 0 ? n - 1 + i : n * (n - 1) / 2 + n * i);
        EXPECT_THAT(data[static_cast<std::size_t>(i)], testing::Each(expected)) << i;
      }
    }
  });
}

TEST_P(EngineSizes, GroupsOfMixedTypes) {
  run([](Engine& engine) {
    std::vector<float> a(3, 1.0F);
    std::vector<double> b(4, 2.0);
    std::vector<TensorArg> tensors = {in_place(a), {b.data(), b.data(), {2, 2}, DataType::float64}};
    engine.synchronize(engine.grouped_allreduce_async("g", tensors, {.op = ReduceOp::sum}));
    EXPECT_EQ(a[2], static_cast<float>(engine.size()));
    EXPECT_EQ(b[3], 2.0 * engine.size());
  });
}

TEST_P(EngineSizes, WrongCallsAreTheCallersOwn) {
  run([](Engine& engine) {
    std::vector<float> data(6);
    const auto invalid = ErrorCode::invalid_argument;
    EXPECT_EQ(code_of([&] {
                engine.allreduce_async("x", in_place(data), {.process_set = ProcessSetId{7}});
              }),
              invalid);
    EXPECT_EQ(code_of([&] {
                engine.alltoall_async("x", data.data(), {6}, DataType::float32,
                                      std::vector<std::size_t>(9, 1), nullptr);
              }),
              invalid);
    EXPECT_EQ(code_of([&] {
                engine.alltoall_async(
                    "x", data.data(), {6}, DataType::float32,
                    std::vector<std::size_t>(static_cast<std::size_t>(engine.size()), 7), nullptr);
              }),
              invalid);
    EXPECT_EQ(code_of([&] {
                engine.broadcast_async("x", data.data(), {6}, DataType::float32, engine.size());
              }),
              invalid);
    EXPECT_EQ(code_of([&] {
                engine.allreduce_async("x", {nullptr, nullptr, {6}, DataType::float32});
              }),
              invalid);
    EXPECT_EQ(code_of([&] { (void)engine.poll(Handle()); }), invalid);
    engine.allreduce("x", in_place(data));  // nothing of this has gone to the others
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineSizes, testing::Values(1, 2, 3, 4));

class EngineTest : public EngineSizes {};

TEST_P(EngineTest, ANameTwice) {
  run([](Engine& engine) {
    std::vector<float> data(6), again(6);
    // Nobody else has submitted it when the second comes: rank 0 waits for the others to say so.
    if (engine.rank() == 0) {
      const Handle first = engine.allreduce_async("x", in_place(data));
      std::string text;
      EXPECT_EQ(code_of([&] { engine.allreduce_async("x", in_place(again)); }, &text),
                ErrorCode::invalid_argument);
      EXPECT_THAT(text, HasSubstr("'x'"));
      engine.allreduce("go", in_place(again));
      engine.synchronize(first);
    } else {
      engine.allreduce("go", in_place(again));
      engine.allreduce("x", in_place(data));
    }
  });
}

TEST_P(EngineTest, DisagreementIsAnErrorOnAllAndNothingBreaks) {
  run([](Engine& engine) {
    for (int round = 0; round < 3; ++round) {
      std::vector<float> data(static_cast<std::size_t>(4 + engine.rank()), 1.0F);
      std::string text;
      EXPECT_EQ(code_of([&] { engine.allreduce("weights", in_place(data)); }, &text),
                ErrorCode::invalid_argument);
      EXPECT_THAT(text,
                  HasSubstr("allreduce 'weights': ranks 0 and 1 disagree: shape [4] and [5]"));
      std::vector<float> good(4, 1.0F);
      engine.allreduce("weights", in_place(good), {.op = ReduceOp::sum});
      EXPECT_EQ(good[0], static_cast<float>(engine.size()));
    }
  });
}

TEST_P(EngineTest, UnnamedOperationsGoByTheirOrder) {
  run([](Engine& engine) {
    std::vector<std::vector<float>> data(20);
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i].assign(10, static_cast<float>(i));
      handles.push_back(engine.allreduce_async("", in_place(data[i])));
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
      engine.synchronize(handles[i]);
      EXPECT_EQ(data[i][9], static_cast<float>(i));
    }
    EXPECT_EQ(handles[3].name(), "allreduce.noname.3");
  });
}

TEST_P(EngineTest, JoinedRanksBringZeros) {
  run([](Engine& engine) {
    const int n = engine.size();
    for (int round = 0; round < 2; ++round) {
      // Rank r has r + 1 batches.
      for (int batch = 0; batch <= engine.rank(); ++batch) {
        std::vector<float> data(100, static_cast<float>(n));
        engine.allreduce("batch" + std::to_string(batch), in_place(data));
        EXPECT_EQ(data[99], static_cast<float>(n - batch));  // the others count as zeros
      }
      EXPECT_EQ(engine.join(), n - 1);
    }
    std::vector<float> data(1, 1.0F);
    engine.allreduce("after", in_place(data), {.op = ReduceOp::sum});
    EXPECT_EQ(data[0], static_cast<float>(n));
  });
}

TEST_P(EngineTest, MovingDataNeedsThoseWhoJoined) {
  run([](Engine& engine) {
    if (engine.rank() != 0) {
      engine.join();
      return;
    }
    std::vector<float> data(2);
    std::string text;
    EXPECT_EQ(code_of(
                  [&] {
                    engine.synchronize(
                        engine.broadcast_async("b", data.data(), {2}, DataType::float32, 0));
                  },
                  &text),
              ErrorCode::invalid_argument);
    EXPECT_THAT(text, HasSubstr("joined"));
    engine.join();
  });
}

TEST_P(EngineTest, ARankWithoutRoomForTheResult) {
  run([](Engine& engine) {
    const std::vector<float> rows(20'000, 1.0F);
    const auto gather = [&](const OutputAllocator& room) {
      engine.synchronize(
          engine.allgather_async("rows", rows.data(), {20'000}, DataType::float32, room));
    };
    std::vector<float> all;
    for (int round = 0; round < 3; ++round) {
      std::string text;
      const bool fails = engine.rank() == round % engine.size();
      const ErrorCode code = code_of(
          [&] {
            gather(fails ? [](auto) -> void* { throw std::bad_alloc(); } : Communicator::into(all));
          },
          &text);
      EXPECT_EQ(code, ErrorCode::unavailable);
      EXPECT_THAT(text, HasSubstr("no memory for the result"));
      gather(Communicator::into(all));
      EXPECT_EQ(all.size(), rows.size() * static_cast<std::size_t>(engine.size()));
    }
  });
}

// What is one rank's own mistake breaks nothing.
TEST_P(EngineTest, NamesHaveALimit) {
  run([](Engine& engine) {
    std::vector<float> data(3, 1.0F);
    std::string text;
    if (engine.rank() == 1) {
      EXPECT_EQ(
          code_of([&] { engine.allreduce(std::string(70 << 20, 'x'), in_place(data)); }, &text),
          ErrorCode::invalid_argument);
      EXPECT_LT(text.size(), 500U);
      EXPECT_THAT(text, HasSubstr("the name has 73400320 bytes, but at most 4096 are allowed"));
      const TensorArg tensor{data.data(), data.data(), Shape(1 << 20, 1), DataType::float32};
      EXPECT_EQ(code_of([&] { engine.allreduce("deep", tensor); }), ErrorCode::invalid_argument);
    }
    engine.allreduce(std::string(4096, 'x'), in_place(data), {.op = ReduceOp::max});
    EXPECT_EQ(data[0], 1.0F);
  });
}

TEST_P(EngineTest, AnAllocatorThatReturnsNullIsAnError) {
  run([](Engine& engine) {
    for (const std::int64_t rows : {3, 20'000}) {
      const std::vector<float> mine(static_cast<std::size_t>(rows), 1.0F);
      std::vector<float> all;
      const bool fails = engine.rank() == 0;
      const auto gather = [&] {
        engine.synchronize(engine.allgather_async("rows", mine.data(), {rows}, DataType::float32,
                                                  fails ? [](auto) -> void* { return nullptr; }
                                                        : Communicator::into(all)));
      };
      std::string text;
      if (fails) {
        EXPECT_EQ(code_of(gather, &text), ErrorCode::invalid_argument);
        EXPECT_THAT(text, HasSubstr("the allocator returned null"));
      } else if (rows == 3) {
        gather();
      } else {
        EXPECT_EQ(code_of(gather), ErrorCode::unavailable);
      }
      engine.barrier();
    }
  });
}

TEST_P(EngineTest, AcrossHosts) {
  std::vector<int> hosts;
  for (int r = 0; r < GetParam(); ++r) hosts.push_back(r / 2);
  const Arrangement wire{"", GetParam() == 2 ? "tcp" : "shm+tcp", hosts, "tcp"};
  if (std::string why; !is_available(wire, &why)) GTEST_SKIP() << why;
  run(
      [](Engine& engine) {
        std::vector<float> data(10'000, 1.0F);
        for (int i = 0; i < 20; ++i) engine.allreduce("x", in_place(data), {.op = ReduceOp::max});
        EXPECT_EQ(data[0], 1.0F);
      },
      wire.transport, hosts);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineTest, testing::Values(2, 4));

TEST(ProcessSets, WorkByThemselves) {
  ThreadRanks ranks({.host_of_rank = {0, 0, 0, 0}});
  ranks.run([](Communicator& world) {
    Engine engine(world);
    const ProcessSetId even = engine.add_process_set({0, 2});
    const ProcessSetId odd = engine.add_process_set({3, 1});
    EXPECT_EQ(code_of([&] { (void)engine.add_process_set({0, 2}); }), ErrorCode::already_exists);
    const bool is_even = engine.rank() % 2 == 0;
    const ProcessSetId mine = is_even ? even : odd;
    EXPECT_EQ(engine.size(mine), 2);
    EXPECT_EQ(engine.rank(odd), is_even ? -1 : (engine.rank() == 3 ? 0 : 1));
    std::vector<float> data(5, static_cast<float>(engine.rank()));
    EXPECT_EQ(code_of([&] {
                engine.allreduce_async("x", in_place(data), {.process_set = is_even ? odd : even});
              }),
              ErrorCode::invalid_argument);

    // The global set waits for rank 3, which comes only after hundreds of operations in the sets.
    std::vector<float> global(5, 1.0F);
    Handle waiting;
    if (engine.rank() != 3)
      waiting = engine.allreduce_async("x", in_place(global), {.op = ReduceOp::sum});
    for (int i = 0; i < 200; ++i) {
      data.assign(5, static_cast<float>(engine.rank()));
      engine.allreduce("x", in_place(data), {.op = ReduceOp::sum, .process_set = mine});
      EXPECT_EQ(data[0], is_even ? 2.0F : 4.0F);
    }
    std::vector<float> shown(2, static_cast<float>(engine.rank()));
    engine.synchronize(
        engine.broadcast_async("r", shown.data(), {2}, DataType::float32, is_even ? 2 : 3, mine));
    EXPECT_EQ(shown[0], is_even ? 2.0F : 3.0F);
    if (engine.rank() == 3)
      waiting = engine.allreduce_async("x", in_place(global), {.op = ReduceOp::sum});
    engine.synchronize(waiting);
    EXPECT_EQ(global[0], 4.0F);

    EXPECT_TRUE(engine.remove_process_set(even));
    EXPECT_FALSE(engine.remove_process_set(even));
    EXPECT_FALSE(engine.remove_process_set(kGlobalProcessSet));
    EXPECT_EQ(code_of([&] { (void)engine.ranks_of(even); }), ErrorCode::invalid_argument);
    EXPECT_THAT(engine.process_sets(), ElementsAre(kGlobalProcessSet, odd));
    engine.barrier();
  });
}

TEST(StarTest, WhatIsNoMessageClosesTheConnectionItCameBy) {
  ThreadRanks ranks({.host_of_rank = {0, 0, 0}});
  ranks.run([](Communicator& world) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    runtime::Star star(world, deadline);
    if (world.rank() == 1) star.send(0, std::string(8, '\xff'));
    while (world.rank() == 0 && !deadline.passed()) {
      const auto news = star.wait(deadline.when());
      if (news.closed.empty()) continue;
      EXPECT_EQ(news.closed.size(), 1U);
      EXPECT_EQ(news.closed[0].member, 1);
      EXPECT_THAT(news.closed[0].reason, HasSubstr("no message of an engine"));
      break;
    }
    world.barrier();
  });
}

TEST(TraceFileTest, OnAFullDiskNoPartIsLeft) {
  const TempDir directory;
  const auto path = directory.path() / "trace.json";
  const auto part = directory.path() / "trace.json.new";
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  {
    runtime::TraceFile file(path, 2);
    const rlimit small{1000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    file.append(std::string(5000, '\n'));
    EXPECT_FALSE(std::filesystem::exists(part));
    EXPECT_THROW(runtime::TraceFile(directory.path() / "other.json", 1000), Error);
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "other.json.new"));
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST(EngineSettings, NumbersThatMeanNothingAreRefused) {
  ThreadRanks ranks({.host_of_rank = {0}});
  ::setenv("KOLO_FUSION_THRESHOLD", "-3", 1);
  ranks.run([](Communicator& world) {
    std::string text;
    EXPECT_EQ(code_of([&] { Engine engine(world); }, &text), ErrorCode::invalid_argument);
    EXPECT_THAT(text, HasSubstr("KOLO_FUSION_THRESHOLD='-3' is negative"));
  });
  ::unsetenv("KOLO_FUSION_THRESHOLD");
  // A part of a millisecond is not never.
  ::setenv("KOLO_STALL_SHUTDOWN_TIME_SECONDS", "0.0005", 1);
  EXPECT_EQ(setting_seconds("STALL_SHUTDOWN_TIME_SECONDS"), std::chrono::milliseconds(1));
  ::unsetenv("KOLO_STALL_SHUTDOWN_TIME_SECONDS");
}

// A program that lets its ranks wait longer, or shorter, than other programs says so once.
TEST(Stalls, LastAsLongAsTheTimeoutOfTheRanks) {
  ThreadRanks ranks({.host_of_rank = {0, 0}, .timeout = std::chrono::seconds(2)});
  std::promise<void> is_over;
  ranks.run([&](Communicator& world) {
    Engine engine(world);
    std::vector<float> data(3);
    if (engine.rank() != 1) {
      std::string text;
      EXPECT_EQ(code_of([&] { engine.allreduce("lonely", in_place(data)); }, &text),
                ErrorCode::timeout);
      EXPECT_THAT(text, HasSubstr("'lonely' was not submitted by rank 1 within 2 s"));
      is_over.set_value();
    } else {
      is_over.get_future().wait();
    }
    engine.allreduce("after", in_place(data));
  });
}

TEST(Stalls, EndWithTheNamesOfThoseWhoDidNotCome) {
  ThreadRanks ranks({.host_of_rank = {0, 0, 0}});
  ranks.run([](Communicator& world) {
    Engine engine(world, {.stall_warning = std::chrono::milliseconds(50),
                          .stall_shutdown = std::chrono::milliseconds(200)});
    std::vector<float> data(3);
    if (engine.rank() != 1) {
      std::string text;
      EXPECT_EQ(code_of([&] { engine.allreduce("lonely", in_place(data)); }, &text),
                ErrorCode::timeout);
      EXPECT_THAT(text, HasSubstr("'lonely' was not submitted by rank 1"));
    }
    world.barrier();
    engine.allreduce("lonely", in_place(data));
    engine.barrier();
  });
}

}  // namespace
}  // namespace kolo::test

// The algorithms of wire groups over messengers in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "comm/reduce_kernels.h"
#include "comm/wire/wire.h"
#include "kolo/error.h"
#include "support/memory_messenger.h"
#include "support/threads.h"

namespace kolo::comm {
namespace {

using namespace std::chrono_literals;
using test::run_threads;

/// Calls `body` on every rank of a flat group.
void with_groups(int size, const std::function<void(Group&)>& body,
                 std::chrono::milliseconds timeout = 20s) {
  auto hub = test::MessengerHub::create();
  run_threads(size, [&](int rank) {
    WireOptions options;
    options.name = "memory";
    options.timeout = timeout;
    auto group = make_flat_wire_group(Topology(rank, std::vector<int>(size, 0)), hub->connect(rank),
                                      options);
    body(*group);
  });
}

void meet(Group& group) {
  Card card;
  card.signature = 1;
  group.exchange(card, nullptr, 0);
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) * 0.37F + static_cast<float>(i % 1013) * 0.011F;
}

struct Shape {
  int size;
  std::size_t count;
};

class WireAllreduce : public testing::TestWithParam<Shape> {};

TEST_P(WireAllreduce, HasTheBitsOfASumInRankOrder) {
  const auto [size, count] = GetParam();
  std::vector<std::vector<float>> inputs(size, std::vector<float>(count));
  for (int r = 0; r < size; ++r)
    for (std::size_t i = 0; i < count; ++i) inputs[r][i] = value_of(r, i);
  const Reduction how{DataType::float32, ReduceOp::sum, 0.5, 3.0, size};
  std::vector<float> expected(count);
  std::vector<const void*> sources(inputs.size());
  std::transform(inputs.begin(), inputs.end(), sources.begin(), [](auto& v) { return v.data(); });
  void* const target = expected.data();
  reduce(sources, {&target, 1}, count, how);

  with_groups(size, [&](Group& group) {
    std::vector<float> in_place = inputs[group.rank()], output(count, -1.0F);
    group.allreduce(in_place.data(), in_place.data(), count, how);
    EXPECT_EQ(std::memcmp(in_place.data(), expected.data(), count * 4), 0) << "in place";
    group.allreduce(inputs[group.rank()].data(), output.data(), count, how);
    EXPECT_EQ(std::memcmp(output.data(), expected.data(), count * 4), 0) << "to another place";
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, WireAllreduce,
                         testing::Values(Shape{2, 1}, Shape{2, 5000}, Shape{2, 100'003},
                                         Shape{2, 700'001}, Shape{3, 1}, Shape{3, 2},
                                         Shape{3, 9001}, Shape{3, 500'009}, Shape{5, 17},
                                         Shape{5, 400'001}),
                         [](const auto& info) {
                           return std::to_string(info.param.size) + "_ranks_" +
                                  std::to_string(info.param.count);
                         });

TEST(WireGroup, ExchangeShowsPayloadsOfDifferentLength) {
  with_groups(4, [](Group& group) {
    for (std::size_t round = 0; round < 50; ++round) {
      const auto length_of = [&](int rank) {
        return std::min(group.eager_bytes(), static_cast<std::size_t>(rank) * 97 * round);
      };
      Card card;
      card.signature = 5;
      card.count = round;
      const std::vector<char> mine(length_of(group.rank()), static_cast<char>('a' + group.rank()));
      const Exchanged all = group.exchange(card, mine.data(), mine.size());
      EXPECT_TRUE(all.agreed());
      for (int r = 0; r < group.size(); ++r) {
        EXPECT_EQ(all.card(r).count, round);
        const auto* payload = reinterpret_cast<const char*>(all.payload(r, length_of(r)));
        EXPECT_EQ(std::string(payload, length_of(r)),
                  std::string(length_of(r), static_cast<char>('a' + r)));
      }
    }
  });
}

TEST(WireGroup, DifferentCardsDoNotAgreeAndTheNextExchangeDoes) {
  with_groups(3, [](Group& group) {
    Card card;
    card.signature = group.rank() == 1 ? 8 : 9;
    EXPECT_FALSE(group.exchange(card, nullptr, 0).agreed());
    card.signature = 9;
    EXPECT_TRUE(group.exchange(card, nullptr, 0).agreed());
  });
}

TEST(WireGroup, LongBroadcastsPassThroughTheMembers) {
  for (int root : {0, 2, 3}) {
    with_groups(4, [&](Group& group) {
      std::vector<std::uint32_t> data(350'003);
      if (group.rank() == root) std::iota(data.begin(), data.end(), 11U);
      group.broadcast(data.data(), data.size() * 4, root);
      for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], i + 11) << "root " << root;
    });
  }
}

TEST(WireGroup, ReducescatterMayWriteOverItsInput) {
  with_groups(3, [](Group& group) {
    const std::vector<std::size_t> counts = {0, 150'000, 70'001};
    std::vector<std::int32_t> data(220'001);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::int32_t>(i) * (group.rank() + 1);
    group.reducescatter(data.data(), data.data(), counts, {DataType::int32, ReduceOp::sum});
    const std::size_t first = group.rank() == 2 ? 150'000 : 0;
    for (std::size_t i = 0; i < counts[group.rank()]; ++i)
      ASSERT_EQ(data[i], static_cast<std::int32_t>(first + i) * 6);
  });
}

TEST(WireGroup, ShortSendsDoNotWaitAndKeepTheirOrder) {
  with_groups(2, [](Group& group) {
    std::vector<std::byte> body(60'000);
    if (group.rank() == 0) {
      for (int i = 0; i < 20; ++i) {
        std::memset(body.data(), i, body.size());
        group.send(1, std::as_bytes(std::span(&i, 1)), body.data(), body.size());
      }
      meet(group);
      return;
    }
    meet(group);  // only now does it look for them
    for (int i = 0; i < 20; ++i) {
      int header = -1;
      ASSERT_EQ(group.recv_header(0, std::as_writable_bytes(std::span(&header, 1))), body.size());
      ASSERT_EQ(header, i);
      if (i % 3 == 0) {
        group.recv_body(0, nullptr, body.size());
      } else {
        group.recv_body(0, body.data(), body.size());
        ASSERT_EQ(body.back(), static_cast<std::byte>(i));
      }
    }
  });
}

TEST(WireGroup, SubsetsHaveTheirOwnOrder) {
  with_groups(4, [](Group& group) {
    auto few = group.subset({3, 1});
    auto one = group.subset({2});
    EXPECT_EQ(few != nullptr, group.rank() == 3 || group.rank() == 1);
    EXPECT_EQ(one != nullptr, group.rank() == 2);
    if (few != nullptr) {
      std::int64_t rank = group.rank();
      std::vector<std::int64_t> ranks(2);
      few->allgather(&rank, ranks.data(), std::vector<std::size_t>{8, 8});
      EXPECT_THAT(ranks, testing::ElementsAre(3, 1));
    }
    if (one != nullptr) {
      EXPECT_EQ(one->size(), 1);
    }
  });
}

TEST(WireGroup, OneThatLeavesIsNamedByAllAndAgain) {
  with_groups(4, [](Group& group) {
    meet(group);
    if (group.rank() == 2) return;
    std::vector<float> data(300'000);
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        group.allreduce(data.data(), data.data(), data.size(), {});
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
        EXPECT_EQ(error.rank(), 2) << error.what();
        EXPECT_THAT(error.what(), testing::HasSubstr("rank 2"));
      }
    }
  });
}

TEST(WireGroup, OneThatStallsIsNamedAlsoByThoseWhoWaitForOthers) {
  std::mutex mutex;
  std::condition_variable changed;
  int failed = 0;
  with_groups(
      3,
      [&](Group& group) {
        meet(group);
        if (group.rank() == 1) {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return failed == 2; });
          return;
        }
        try {
          // A ring: 0 waits for 2, which waits for 1.
          std::byte header;
          group.recv_header(group.rank() == 0 ? 2 : 1, {&header, 1});
          ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
          EXPECT_EQ(error.rank(), 1) << error.what();
        }
        std::lock_guard lock(mutex);
        ++failed;
        changed.notify_all();
      },
      400ms);
}

}  // namespace
}  // namespace kolo::comm

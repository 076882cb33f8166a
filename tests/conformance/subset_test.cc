// Groups of some of the ranks.
#include <numeric>
#include <thread>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

class Subset : public Conformance {};

int sum_of(const std::vector<int>& ranks) { return std::accumulate(ranks.begin(), ranks.end(), 0); }

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

TEST_P(Subset, MembersHaveNewRanksOthersGetNothing) {
  run([&](Communicator& comm) {
    const int n = comm.size();
    std::vector<std::vector<int>> lists;
    for (int r = 0; r < n; ++r) lists.push_back({r});
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 0);
    lists.push_back(all);
    lists.emplace_back(all.rbegin(), all.rend());  // in reverse: rank 0 becomes the last
    if (n > 2) lists.push_back({n - 1, 0});
    if (n > 3) lists.push_back({2, 3, 1});
    for (const auto& list : lists) {
      auto group = comm.subset(list);
      ASSERT_EQ(group != nullptr, contains(list, comm.rank()));
      if (!group) continue;
      EXPECT_EQ(group->size(), static_cast<int>(list.size()));
      EXPECT_EQ(list[group->rank()], comm.rank());
      EXPECT_EQ(group->allreduce(comm.rank(), ReduceOp::sum), sum_of(list));
      const std::vector<int> mine = {comm.rank()};
      EXPECT_EQ(group->allgather(std::span<const int>(mine)), list);
      int value = comm.rank();
      group->broadcast(&value, 1, DataType::int32, group->size() - 1);
      EXPECT_EQ(value, list.back());
      std::vector<double> large(50'000, comm.rank());
      group->allreduce(std::span(large), ReduceOp::sum);
      EXPECT_EQ(large[49'999], sum_of(list));
    }
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), n);
  });
}

TEST_P(Subset, OwnMemoryOfTheWorldServesTheSubset) {
  run([&](Communicator& comm) {
    auto data = comm.allocate<float>(30'000);
    std::fill(data.begin(), data.end(), 1.0F);
    std::vector<int> odd;
    for (int r = 1; r < comm.size(); r += 2) odd.push_back(r);
    if (odd.empty()) odd = {0};
    auto group = comm.subset(odd);
    if (group) {
      group->allreduce(data.span(), ReduceOp::sum);
      EXPECT_EQ(data[29'999], static_cast<float>(odd.size()));
      auto more = group->allocate<float>(1000);
      group->allreduce(more.span(), ReduceOp::sum);
    }
    comm.barrier();
  });
}

TEST_P(Subset, NestedSubsets) {
  run([&](Communicator& comm) {
    std::unique_ptr<Communicator> current;
    Communicator* from = &comm;
    // Each time without the first rank.
    for (int left = comm.size() - 1; left > 0 && from != nullptr; --left) {
      std::vector<int> rest(left);
      std::iota(rest.begin(), rest.end(), 1);
      auto next = from->subset(rest);
      if (next) {
        EXPECT_EQ(next->allreduce(1, ReduceOp::sum), left);
        EXPECT_EQ(next->rank(), from->rank() - 1);
      }
      current = std::move(next);
      from = current.get();
    }
    comm.barrier();
  });
}

// Two overlapping groups, each used by a thread of its own on every rank, at its own pace.
TEST_P(Subset, OverlappingGroupsProgressIndependently) {
  run([&](Communicator& comm) {
    const int n = comm.size();
    std::vector<int> low, high;
    for (int r = 0; r < n; ++r) {
      if (r <= n / 2) low.push_back(r);
      if (r >= n / 2) high.push_back(n - 1 - (r - n / 2));
    }
    auto a = comm.subset(low);
    auto b = comm.subset(high);
    auto work = [](Communicator* group, int rounds, std::size_t large) {
      if (group == nullptr) return;
      for (int i = 0; i < rounds; ++i) {
        std::vector<std::int32_t> data(i % 10 == 0 ? large : 1 + i % 30, group->rank() + i);
        group->allreduce(std::span(data), ReduceOp::max);
        ASSERT_EQ(data.back(), group->size() - 1 + i);
      }
    };
    std::thread other([&] { work(a.get(), 300, 5000); });
    work(b.get(), 100, 40'000);
    other.join();
    comm.barrier();
  });
}

// A group waits for nobody outside it: its members work while the other ranks stay away.
TEST_P(Subset, DoesNotNeedTheOthers) {
  if (size() < 3) GTEST_SKIP() << "needs three ranks";
  run([&](Communicator& comm) {
    auto pair = comm.subset({0, 2});
    int token = 7;
    if (comm.rank() == 1) comm.recv(&token, 1, DataType::int32, 0);  // until the pair is done
    for (int i = 0; pair != nullptr && i < 100; ++i) {
      EXPECT_EQ(pair->allreduce(1, ReduceOp::sum), 2);
    }
    if (comm.rank() == 0) comm.send(&token, 1, DataType::int32, 1);
    comm.barrier();
  });
}

TEST_P(Subset, BadListsAreRefusedByAll) {
  run([&](Communicator& comm) {
    const int n = comm.size();
    for (const std::vector<int>& list : {std::vector<int>{}, {0, 0}, {-1}, {n}, {0, n + 3}}) {
      expect_error(ErrorCode::invalid_argument, [&] { (void)comm.subset(list); });
    }
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), n);
  });
}

TEST_P(Subset, DifferentListsAreAnErrorEverywhere) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  run([&](Communicator& comm) {
    for (int i = 0; i < 10; ++i) {
      expect_error(ErrorCode::invalid_argument, [&] {
        (void)comm.subset(comm.rank() == 0 ? std::vector<int>{0} : std::vector<int>{0, 1});
      });
      expect_error(ErrorCode::invalid_argument, [&] {
        (void)comm.subset(comm.rank() == 1 ? std::vector<int>{0, 1} : std::vector<int>{1, 0});
      });
      EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
    }
  });
}

TEST_P(Subset, ManyGroupsComeAndGo) {
  run([&](Communicator& comm) {
    for (int i = 0; i < 50; ++i) {
      std::vector<int> list;
      for (int r = 0; r < comm.size(); ++r)
        if (r == i % comm.size() || (r + i) % 2 == 0) list.push_back(r);
      auto group = comm.subset(list);
      if (group != nullptr) {
        EXPECT_EQ(group->allreduce(1, ReduceOp::sum), static_cast<int>(list.size()));
      }
    }
  });
}

KOLO_CONFORMANCE(Subset, all_arrangements());

}  // namespace
}  // namespace kolo::test

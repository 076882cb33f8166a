// A rank whose shared memory is full: what needs none of it goes on, what does is an error on every
// rank, and nobody waits for a rank that could not come.
#include <cstdlib>
#include <numeric>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

class FullMemory : public testing::TestWithParam<Arrangement> {
 protected:
  void SetUp() override {
    std::string why;
    if (!is_available(GetParam(), &why)) GTEST_SKIP() << why;
    ::setenv("KOLO_SHARED_MEMORY_BYTES", "33554432", 1);
    ThreadRanksOptions options;
    options.host_of_rank = GetParam().host_of_rank;
    options.transport = GetParam().transport;
    ranks_.emplace(options);
    ::unsetenv("KOLO_SHARED_MEMORY_BYTES");
  }
  void run(const std::function<void(Communicator&)>& body) { ranks_->run(body); }

  /// Takes all memory of this rank.
  static std::vector<Buffer<std::byte>> fill(Communicator& comm) {
    std::vector<Buffer<std::byte>> taken;
    for (std::size_t bytes = 1 << 20; bytes >= 128; bytes /= 2) {
      try {
        for (;;) taken.push_back(comm.allocate<std::byte>(bytes));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.what();
      }
    }
    return taken;
  }

 private:
  std::optional<ThreadRanks> ranks_;
};

TEST_P(FullMemory, OneRankWithoutMemoryIsAnErrorOnEveryRank) {
  const bool shares = GetParam().expected.find("shm") != std::string::npos;
  run([&](Communicator& comm) {
    const int full = comm.size() - 1;
    std::vector<int> all(static_cast<std::size_t>(comm.size()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<Buffer<std::byte>> taken;
    if (comm.rank() == full) taken = fill(comm);
    for (int i = 0; shares && i < 3; ++i)
      expect_error(ErrorCode::unavailable, [&] { (void)comm.subset(all); });
    taken.clear();
    const auto group = comm.subset(all);
    EXPECT_EQ(group->allreduce(1, ReduceOp::sum), comm.size());
  });
}

TEST_P(FullMemory, OperationsThatOnlyWantMemoryDoWithout) {
  run([&](Communicator& comm) {
    std::vector<Buffer<std::byte>> taken;
    if (comm.rank() == 0) taken = fill(comm);
    for (const std::size_t count : {1U, 3000U, 50'000U, 400'000U}) {
      std::vector<double> data(count, comm.rank() + 1);
      comm.allreduce(std::span(data), ReduceOp::sum);
      EXPECT_EQ(data[count - 1], comm.size() * (comm.size() + 1) / 2.0) << count;
      comm.broadcast(data.data(), count, DataType::float64, 0);
      const std::vector<double> mine(count, comm.rank());
      const auto gathered = comm.allgather(std::span<const double>(mine));
      EXPECT_EQ(gathered.back(), comm.size() - 1) << count;
    }
  });
}

KOLO_CONFORMANCE(FullMemory, some_arrangements());

}  // namespace
}  // namespace kolo::test

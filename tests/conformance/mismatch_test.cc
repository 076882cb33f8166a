// Ranks that disagree: an error on every rank that says what differs, and the next operation works.
#include <gmock/gmock.h>

#include <numeric>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

using testing::HasSubstr;

// One way to disagree: what the odd one out calls, what the others call, and what the message must
// name.
struct Disagreement {
  const char* name;
  std::function<void(Communicator&)> odd, others;
  std::vector<std::string> words;
};

struct Data {
  std::vector<double> in = std::vector<double>(40'000), out = in;
};

void allreduce(Communicator& comm, std::size_t count, DataType type = DataType::float32,
               ReduceOp op = ReduceOp::sum, Scaling scaling = {}) {
  Data data;
  comm.allreduce(data.in.data(), data.out.data(), count, type, op, scaling);
}

void broadcast(Communicator& comm, std::size_t count, int root, DataType type = DataType::float32) {
  Data data;
  comm.broadcast(data.in.data(), count, type, root);
}

void allgather(Communicator& comm, std::size_t rows, std::size_t row_size,
               DataType type = DataType::float32) {
  Data data;
  comm.allgather(data.in.data(), rows, row_size, type, [&](auto) { return data.out.data(); });
}

void alltoall(Communicator& comm, std::size_t row_size, DataType type = DataType::float32) {
  Data data;
  const std::vector<std::size_t> splits(comm.size(), 2);
  comm.alltoall(data.in.data(), 2 * comm.size(), row_size, type, splits,
                [&](auto) { return data.out.data(); });
}

void gather(Communicator& comm, int root, DataType type = DataType::int32) {
  Data data;
  comm.gather(data.in.data(), 5, type, root, [&](auto) { return data.out.data(); });
}

// `count` is what this rank expects; the root sends 3 to each.
void scatter(Communicator& comm, std::size_t count, int root, DataType type = DataType::int32) {
  Data data;
  const std::vector<std::size_t> counts(comm.size(), 3);
  comm.scatter(data.in.data(), counts, data.out.data(), count, type, root);
}

void reducescatter(Communicator& comm, std::size_t rows, std::size_t row_size,
                   DataType type = DataType::float32, ReduceOp op = ReduceOp::sum) {
  Data data;
  comm.reducescatter(data.in.data(), data.out.data(), rows, row_size, type, op);
}

void grouped(Communicator& comm, std::vector<std::size_t> counts,
             DataType last_type = DataType::float32, ReduceOp op = ReduceOp::sum) {
  Data data;
  std::vector<TensorRef> tensors;
  std::size_t at = 0;
  for (std::size_t count : counts) {
    const bool is_last = tensors.size() + 1 == counts.size();
    tensors.push_back({data.in.data() + at, data.out.data() + at, count,
                       is_last ? last_type : DataType::float32});
    at += count;
  }
  comm.grouped_allreduce(tensors, op);
}

std::vector<Disagreement> disagreements() {
  using C = Communicator;
  constexpr auto kF32 = DataType::float32, kI32 = DataType::int32;
  constexpr auto kSum = ReduceOp::sum;
  return {
      {"kind", [](C& c) { c.barrier(); }, [](C& c) { allreduce(c, 4); }, {"barrier", "allreduce"}},
      {"kind large",
       [](C& c) { broadcast(c, 30'000, 0); },
       [](C& c) { allreduce(c, 30'000); },
       {"broadcast", "allreduce"}},
      {"kind of the same shape",
       [](C& c) { grouped(c, {4}); },
       [](C& c) { allreduce(c, 4); },
       {"allreduce", "grouped_allreduce"}},
      {"allreduce type",
       [](C& c) { allreduce(c, 8, kI32); },
       [](C& c) { allreduce(c, 8, kF32); },
       {"int32", "float32"}},
      {"allreduce count",
       [](C& c) { allreduce(c, 17); },
       [](C& c) { allreduce(c, 16); },
       {"17", "16"}},
      {"allreduce small and large",
       [](C& c) { allreduce(c, 3); },
       [](C& c) { allreduce(c, 33'333); },
       {"3 ", "33333"}},
      {"allreduce small and middle",
       [](C& c) { allreduce(c, 3); },
       [](C& c) { allreduce(c, 16'000); },
       {"3 ", "16000"}},
      {"allreduce middle count",
       [](C& c) { allreduce(c, 16'001); },
       [](C& c) { allreduce(c, 16'000); },
       {"16001", "16000"}},
      {"kind middle",
       [](C& c) { c.barrier(); },
       [](C& c) { allreduce(c, 16'000); },
       {"barrier", "allreduce"}},
      {"allreduce nothing and something",
       [](C& c) { allreduce(c, 0); },
       [](C& c) { allreduce(c, 1); },
       {"0 ", "1 "}},
      {"allreduce operation",
       [](C& c) { allreduce(c, 8, kF32, ReduceOp::max); },
       [](C& c) { allreduce(c, 8); },
       {"max", "sum"}},
      {"allreduce average",
       [](C& c) { allreduce(c, 8, kF32, ReduceOp::average); },
       [](C& c) { allreduce(c, 8); },
       {"average", "sum"}},
      {"allreduce adasum",
       [](C& c) { allreduce(c, 8, kF32, ReduceOp::adasum); },
       [](C& c) { allreduce(c, 8); },
       {"adasum", "sum"}},
      {"prescale",
       [](C& c) {
         allreduce(c, 8, kF32, kSum, {2.5, 1});
       },
       [](C& c) { allreduce(c, 8); },
       {"2.5"}},
      {"postscale",
       [](C& c) {
         allreduce(c, 20'000, kF32, kSum, {1, 0.25});
       },
       [](C& c) {
         allreduce(c, 20'000, kF32, kSum, {1, 0.75});
       },
       {"0.25", "0.75"}},
      {"broadcast root",
       [](C& c) { broadcast(c, 8, 1); },
       [](C& c) { broadcast(c, 8, 0); },
       {"root"}},
      {"broadcast count",
       [](C& c) { broadcast(c, 30'001, 0); },
       [](C& c) { broadcast(c, 30'000, 0); },
       {"30001", "30000"}},
      {"broadcast type",
       [](C& c) { broadcast(c, 8, 0, kI32); },
       [](C& c) { broadcast(c, 8, 0); },
       {"int32", "float32"}},
      {"allgather row size",
       [](C& c) { allgather(c, 2, 3); },
       [](C& c) { allgather(c, 2, 4); },
       {"3", "4"}},
      {"allgather type",
       [](C& c) { allgather(c, 2, 3, kI32); },
       [](C& c) { allgather(c, 9, 3); },
       {"int32", "float32"}},
      {"alltoall row size", [](C& c) { alltoall(c, 3); }, [](C& c) { alltoall(c, 5); }, {"3", "5"}},
      {"alltoall type",
       [](C& c) { alltoall(c, 3, kI32); },
       [](C& c) { alltoall(c, 3); },
       {"int32", "float32"}},
      {"gather root", [](C& c) { gather(c, 1); }, [](C& c) { gather(c, 0); }, {"root"}},
      {"gather type",
       [](C& c) { gather(c, 0, kF32); },
       [](C& c) { gather(c, 0); },
       {"int32", "float32"}},
      {"scatter root", [](C& c) { scatter(c, 3, 1); }, [](C& c) { scatter(c, 3, 0); }, {"root"}},
      {"scatter type",
       [](C& c) { scatter(c, 3, 0, kF32); },
       [](C& c) { scatter(c, 3, 0); },
       {"int32", "float32"}},
      {"scatter count",
       [](C& c) { scatter(c, 4, 0); },
       [](C& c) { scatter(c, 3, 0); },
       {"scatter"}},
      {"reducescatter rows",
       [](C& c) { reducescatter(c, 9, 2); },
       [](C& c) { reducescatter(c, 8, 2); },
       {"18", "16"}},
      {"reducescatter row size of one total",
       [](C& c) { reducescatter(c, 4, 4); },
       [](C& c) { reducescatter(c, 8, 2); },
       {"row"}},
      {"reducescatter operation",
       [](C& c) { reducescatter(c, 8, 2, kF32, ReduceOp::average); },
       [](C& c) { reducescatter(c, 8, 2); },
       {"average", "sum"}},
      {"grouped count",
       [](C& c) {
         grouped(c, {3, 4});
       },
       [](C& c) {
         grouped(c, {4, 3});
       },
       {"grouped_allreduce"}},
      {"grouped number",
       [](C& c) {
         grouped(c, {3, 4, 0});
       },
       [](C& c) {
         grouped(c, {3, 4});
       },
       {"grouped_allreduce"}},
      {"grouped type",
       [](C& c) {
         grouped(c, {3, 4}, kI32);
       },
       [](C& c) {
         grouped(c, {3, 4});
       },
       {"grouped_allreduce"}},
      {"grouped nothing and something",
       [](C& c) { grouped(c, {}); },
       [](C& c) {
         grouped(c, {3, 4});
       },
       {"grouped_allreduce"}},
      {"null memory on one rank",
       [](C& c) { c.allreduce(nullptr, nullptr, 4, DataType::float32, ReduceOp::sum); },
       [](C& c) { allreduce(c, 4); },
       {"allreduce"}},
      {"root out of range on one rank",
       [](C& c) { broadcast(c, 4, 99); },
       [](C& c) { broadcast(c, 4, 0); },
       {"broadcast"}},
  };
}

class Mismatch : public Conformance {
 protected:
  void SetUp() override {
    if (size() < 2) GTEST_SKIP() << "needs two ranks";
    Conformance::SetUp();
  }

  void check(const Disagreement& how, int odd_rank) {
    SCOPED_TRACE(testing::Message() << how.name << ", rank " << odd_rank << " is the odd one");
    run([&](Communicator& comm) {
      SCOPED_TRACE(testing::Message() << "on rank " << comm.rank());
      const Error error = expect_error(ErrorCode::invalid_argument, [&] {
        comm.rank() == odd_rank ? how.odd(comm) : how.others(comm);
      });
      EXPECT_FALSE(error.rank().has_value());
      // A call that is wrong by itself is explained in full where it was made, and elsewhere by
      // the rank that made it.
      const std::string message = error.what();
      for (const std::string& word : how.words) EXPECT_THAT(message, HasSubstr(word));
      if (comm.rank() != odd_rank) {
        EXPECT_THAT(message, HasSubstr("rank"));
      }
      EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
      std::vector<float> large(20'000, 1.0F);
      comm.allreduce(std::span(large), ReduceOp::sum);
      EXPECT_EQ(large.back(), static_cast<float>(comm.size()));
    });
  }
};

TEST_P(Mismatch, EveryFieldOnEveryRank) {
  for (const Disagreement& how : disagreements()) {
    check(how, size() - 1);
    check(how, 0);
    if (HasFailure()) break;
  }
}

TEST_P(Mismatch, AHundredTimes) {
  const auto all = disagreements();
  const Disagreement& type = all[3];
  run([&](Communicator& comm) {
    for (int i = 0; i < 100; ++i) {
      expect_error(ErrorCode::invalid_argument,
                   [&] { comm.rank() == i % comm.size() ? type.odd(comm) : type.others(comm); });
      ASSERT_EQ(comm.allreduce(i, ReduceOp::max), i);
    }
  });
}

// In place, and of sizes that go different ways: nothing may have been added up before all agreed.
TEST_P(Mismatch, LeavesTheDataAsItWas) {
  run([&](Communicator& comm) {
    for (const std::size_t count : {4, 16'000, 30'000, 300'000}) {
      const std::vector<float> given(count, static_cast<float>(comm.rank() + 1));
      std::vector<float> data = given;
      const std::size_t shorter = comm.rank() == comm.size() - 1 ? 1 : 0;
      expect_error(ErrorCode::invalid_argument, [&] {
        comm.allreduce(data.data(), data.data(), count - shorter, DataType::float32);
      });
      EXPECT_EQ(data, given) << count;
    }
  });
}

// All ranks differ from one another.
TEST_P(Mismatch, EverybodyCallsSomethingElse) {
  run([&](Communicator& comm) {
    const auto count = static_cast<std::size_t>(10 + comm.rank());
    expect_error(ErrorCode::invalid_argument, [&] { allreduce(comm, count); });
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
  });
}

// Products and sums that wrap would pass every other check and write anywhere.
TEST_P(Mismatch, SizesThatNoMachineHolds) {
  constexpr std::size_t kHalf = std::size_t{1} << 63, kQuarter = std::size_t{1} << 62;
  run([&](Communicator& comm) {
    Data data;
    const auto room = [&](auto) { return data.out.data(); };
    const auto refused = [&](const std::function<void()>& call) {
      expect_error(ErrorCode::invalid_argument, call);
    };
    refused([&] { allreduce(comm, kQuarter); });
    refused([&] { broadcast(comm, kQuarter, 0); });
    refused([&] { allgather(comm, kHalf, 2); });
    refused([&] { comm.gather(data.in.data(), kQuarter, DataType::float32, 0, room); });
    refused([&] {
      comm.reducescatter(data.in.data(), data.out.data(), kQuarter, 4, DataType::float32,
                         ReduceOp::sum);
    });
    std::vector<std::size_t> splits(static_cast<std::size_t>(comm.size()), 0);
    splits.front() = kHalf;
    splits.back() += kHalf;  // together 0
    refused([&] { comm.alltoall(data.in.data(), 4, 1, DataType::float32, splits, room); });
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
  });
}

// The root of a scatter contradicts itself: all are told.
TEST_P(Mismatch, ScatterRootExpectsAnotherCountThanItSends) {
  run([&](Communicator& comm) {
    expect_error(ErrorCode::invalid_argument, [&] { scatter(comm, comm.rank() == 0 ? 7 : 3, 0); });
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
  });
}

// One rank's allocator fails after sizes were agreed on: nobody may be left waiting for its data.
TEST_P(Mismatch, ARankWithoutRoomForTheResult) {
  constexpr std::size_t kCount = 50'000;
  using Call = std::function<void(Communicator&, const std::vector<double>&, OutputAllocator)>;
  const std::pair<const char*, Call> calls[] = {
      {"allgather",
       [](Communicator& c, const auto& data, OutputAllocator room) {
         c.allgather(data.data(), kCount, 1, DataType::float64, room);
       }},
      {"alltoall",
       [](Communicator& c, const auto& data, OutputAllocator room) {
         std::vector<std::size_t> splits(static_cast<std::size_t>(c.size()), 0);
         splits[0] = kCount;
         c.alltoall(data.data(), kCount, 1, DataType::float64, splits, room);
       }},
      {"gather",
       [](Communicator& c, const auto& data, OutputAllocator room) {
         c.gather(data.data(), kCount, DataType::float64, 0, room);
       }},
  };
  run([&](Communicator& comm) {
    const std::vector<double> data(kCount, comm.rank());
    for (const auto& [name, call] : calls) {
      SCOPED_TRACE(testing::Message() << name << " on rank " << comm.rank());
      std::vector<double> all;
      if (comm.rank() == 0) {
        EXPECT_THROW(call(comm, data, [](auto) -> void* { throw std::bad_alloc(); }),
                     std::bad_alloc);
      } else {
        const Error error = expect_error(ErrorCode::unavailable,
                                         [&] { call(comm, data, Communicator::into(all)); });
        EXPECT_THAT(error.message(), HasSubstr("rank 0 has no memory"));
      }
      call(comm, data, Communicator::into(all));  // now there is room
      if (comm.rank() == 0) {
        ASSERT_EQ(all.size(), kCount * static_cast<std::size_t>(comm.size()));
        EXPECT_EQ(all.back(), comm.size() - 1);
      }
    }
  });
}

// A mismatch in a subset is the subset's affair.
TEST_P(Mismatch, StaysInsideTheSubset) {
  run([&](Communicator& comm) {
    auto group = comm.subset({1, 0});
    if (group) {
      expect_error(ErrorCode::invalid_argument,
                   [&] { allreduce(*group, group->rank() == 0 ? 3 : 4); });
      EXPECT_EQ(group->allreduce(1, ReduceOp::sum), 2);
    }
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
  });
}

KOLO_CONFORMANCE(Mismatch, some_arrangements());

}  // namespace
}  // namespace kolo::test

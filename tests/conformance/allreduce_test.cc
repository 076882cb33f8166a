// allreduce: every type and operation, all sizes and places of data.
#include <cmath>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

constexpr ReduceOp kPlainOps[] = {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                  ReduceOp::product};

struct Case {
  DataType type;
  ReduceOp op;
  std::size_t count;
  Layout layout;
  Scaling scaling{};
};

class Allreduce : public Conformance {
 protected:
  // Runs all cases in one go, then checks each: right values, and the same bits on all ranks.
  void check(const std::vector<Case>& cases) {
    std::vector<std::vector<Bytes>> inputs, outputs(cases.size(), std::vector<Bytes>(size()));
    for (const Case& c : cases)
      inputs.push_back(make_inputs(c.type, c.count, inputs.size(), range_for(c.type, c.op)));
    run([&](Communicator& comm) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const Case& c = cases[i];
        const Bytes& input = inputs[i][comm.rank()];
        outputs[i][comm.rank()] =
            apply(comm, c.layout, input, input.size(), [&](const void* in, void* out) {
              comm.allreduce(in, out, c.count, c.type, c.op, c.scaling);
            });
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      SCOPED_TRACE(testing::Message() << to_string(c.op) << " of " << c.count << " "
                                      << to_string(c.type) << ", " << c.layout.name << ", scaling "
                                      << c.scaling.prescale << " " << c.scaling.postscale);
      ASSERT_TRUE(is_reduction(outputs[i][0], inputs[i], c.type, c.op, c.scaling));
      for (int r = 1; r < size(); ++r)
        ASSERT_TRUE(same_bytes(outputs[i][r], outputs[i][0])) << "rank " << r;
    }
  }
};

class AllreduceLarge : public Allreduce {};

TEST_P(Allreduce, TransportIsTheOneExpected) {
  run([&](Communicator& comm) { EXPECT_EQ(comm.transport(), GetParam().expected); });
}

// Sizes between what travels with the meeting and what takes two trips in any case.
TEST_P(Allreduce, TheSwitchToOneTripDoesNotChangeBits) {
  constexpr std::size_t kCount = 60'001;
  for (const DataType type : {DataType::float32, DataType::bfloat16}) {
    const auto inputs = make_inputs(type, kCount, 5, range_for(type, ReduceOp::average));
    std::vector<std::vector<Bytes>> outputs(3, std::vector<Bytes>(size()));
    run([&](Communicator& comm) {
      const std::size_t given = comm.one_trip_bytes();
      const std::size_t trips[] = {given, 1, std::size_t{64} << 20};
      for (std::size_t i = 0; i < 3; ++i) {
        comm.set_one_trip_bytes(trips[i]);
        Bytes data = inputs[comm.rank()];
        comm.allreduce(data.data(), data.data(), kCount, type);
        outputs[i][comm.rank()] = data;
      }
      comm.set_one_trip_bytes(given);
      EXPECT_EQ(comm.one_trip_bytes(), given);
      if (comm.rank() == 0) {
        EXPECT_EQ(given != 0, GetParam().expected != "shm" && GetParam().expected != "solo");
      }
    });
    for (std::size_t i = 0; i < 3; ++i)
      for (int r = 0; r < size(); ++r) ASSERT_TRUE(same_bytes(outputs[i][r], outputs[0][0])) << r;
    ASSERT_TRUE(is_reduction(outputs[0][0], inputs, type, ReduceOp::average, {}));
  }
}

TEST_P(Allreduce, EveryTypeOperationAndSmallSize) {
  for (DataType type : kAllTypes) {
    std::vector<Case> cases;
    for (ReduceOp op : kPlainOps) {
      if (!is_supported(type, op)) continue;
      for (std::size_t count : {0, 1, 3, 17, 1023, 4099})
        cases.push_back({type, op, count, kLayouts[cases.size() % std::size(kLayouts)]});
    }
    ASSERT_NO_FATAL_FAILURE(check(cases));
  }
}

TEST_P(Allreduce, EveryPlaceOfData) {
  std::vector<Case> cases;
  for (const Layout& layout : kLayouts)
    for (std::size_t count : {0, 1, 5, 129, 2048, 20'011})
      for (DataType type : {DataType::float32, DataType::bfloat16, DataType::int8})
        cases.push_back({type, ReduceOp::sum, count, layout});
  check(cases);
}

TEST_P(AllreduceLarge, EveryPlaceOfData) {
  for (DataType type : {DataType::float32, DataType::float16, DataType::int64, DataType::boolean})
    for (int i : {0, 2, 5, 7}) check({{type, ReduceOp::sum, 70'001, kLayouts[i]}});
  for (int i : {1, 2, 6}) check({{DataType::float32, ReduceOp::average, 786'433, kLayouts[i]}});
  check({{DataType::bfloat16, ReduceOp::max, 1'500'007, kLayouts[8]}});
}

// Sizes on both sides of every boundary that a transport might have.
TEST_P(Allreduce, SizesAroundPowersOfTwo) {
  std::vector<Case> cases;
  for (std::size_t power = 8; power <= 1 << 17; power *= 2)
    for (std::size_t count : {power - 1, power, power + 1})
      cases.push_back({DataType::uint8, ReduceOp::sum, count, kLayouts[cases.size() % 3]});
  check(cases);
}

TEST_P(Allreduce, Scaling) {
  std::vector<Case> cases;
  for (DataType type : kAllTypes) {
    if (type == DataType::boolean) continue;
    for (ReduceOp op : {ReduceOp::average, ReduceOp::sum}) {
      // Integers are not wild only for the average; their factors stay whole before the sum.
      const bool whole = is_integer(type);
      if (whole && op == ReduceOp::sum) continue;
      for (std::size_t count : {1, 100, 9000}) {
        cases.push_back({type, op, count, kLayouts[0], {2.0, 1.0}});
        cases.push_back({type, op, count, kLayouts[1], {1.0, 0.5}});
        cases.push_back({type, op, count, kLayouts[2], {whole ? 2.0 : 0.3, 0.25}});
      }
    }
  }
  check(cases);
}

TEST_P(Allreduce, AverageOfIntegersTruncatesTowardZero) {
  run([&](Communicator& comm) {
    const int n = comm.size();
    std::vector<std::int32_t> data = {-1,
                                      1,
                                      7 * comm.rank(),
                                      -7 * comm.rank(),
                                      n,
                                      -n,
                                      comm.rank() == 0 ? n - 1 : 0,
                                      comm.rank() == 0 ? 1 - n : 0};
    comm.allreduce(std::span(data));
    const int sum = 7 * n * (n - 1) / 2;
    EXPECT_EQ(data, (std::vector<std::int32_t>{-1, 1, sum / n, -(sum / n), n, -n, 0, 0}));
  });
}

TEST_P(Allreduce, NaNIsKeptByMinAndMax) {
  run([&](Communicator& comm) {
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      std::vector<float> data(3000, static_cast<float>(comm.rank()));
      if (comm.rank() == comm.size() - 1) data[0] = data[2999] = NAN;
      comm.allreduce(std::span(data), op);
      EXPECT_TRUE(std::isnan(data[0]) && std::isnan(data[2999]));
      EXPECT_EQ(data[1], op == ReduceOp::min ? 0.0F : static_cast<float>(comm.size() - 1));
    }
  });
}

TEST_P(Allreduce, RefusesWhatHasNoMeaning) {
  run([&](Communicator& comm) {
    bool flags[4] = {};
    std::int32_t numbers[4] = {};
    for (ReduceOp op : {ReduceOp::average, ReduceOp::adasum})
      expect_error(ErrorCode::invalid_argument,
                   [&] { comm.allreduce(flags, flags, 4, DataType::boolean, op); });
    expect_error(ErrorCode::invalid_argument,
                 [&] { comm.allreduce(numbers, numbers, 4, DataType::int32, ReduceOp::adasum); });
    expect_error(ErrorCode::invalid_argument, [&] {
      comm.allreduce(numbers, numbers, 4, static_cast<DataType>(77), ReduceOp::sum);
    });
    expect_error(ErrorCode::invalid_argument, [&] {
      comm.allreduce(numbers, numbers, 4, DataType::int32, static_cast<ReduceOp>(9));
    });
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), comm.size());
  });
}

// The order of summation is fixed: ten jobs, the same bits.
TEST_P(Allreduce, SameBitsInEveryRun) {
  const auto inputs = make_inputs(DataType::float32, 50'000, 3, Range::wild);
  std::vector<Bytes> first(size());
  for (int repeat = 0; repeat < 10; ++repeat) {
    run([&](Communicator& comm) {
      const Bytes out = apply(comm, kLayouts[repeat % 2 == 0 ? 0 : 2], inputs[comm.rank()],
                              inputs[0].size(), [&](const void* in, void* out) {
                                comm.allreduce(in, out, 50'000, DataType::float32, ReduceOp::sum);
                              });
      if (repeat == 0) first[comm.rank()] = out;
      EXPECT_TRUE(same_bytes(out, first[comm.rank()])) << "repeat " << repeat;
    });
  }
}

KOLO_CONFORMANCE(Allreduce, all_arrangements());
KOLO_CONFORMANCE(AllreduceLarge, some_arrangements());

// 49 · (1/49) is below 1 in float64: an average by multiplication would lose one.
TEST(AllreduceManyRanks, AverageOfFortyNineOnesIsOne) {
  ThreadRanks ranks({.host_of_rank = std::vector<int>(49, 0)});
  ranks.run([](Communicator& comm) {
    EXPECT_EQ(comm.allreduce<std::int64_t>(1), 1);
    EXPECT_EQ(comm.allreduce<std::int32_t>(-comm.size() * 3), -comm.size() * 3);
  });
}

}  // namespace
}  // namespace kolo::test

// The arithmetic on plain memory: every type, operation and number of inputs.
#include "comm/reduce_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/cpu.h"
#include "comm/reduce_kernels_table.h"
#include "support/oracle.h"

namespace kolo::comm {
namespace {

using test::Bytes;
using test::kAllTypes;

constexpr ReduceOp kKernelOps[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product};
// Around the widths of vectors and unrolled loops, with tails.
constexpr std::size_t kCounts[] = {0, 1, 3, 7, 16, 17, 31, 63, 64, 65, 127, 1023, 4099};

std::vector<Bytes> make_inputs(DataType type, std::size_t count, int n, std::uint64_t seed,
                               test::Range range) {
  std::vector<Bytes> inputs;
  for (int i = 0; i < n; ++i) inputs.push_back(make_values(type, count, seed * 64 + i, range));
  return inputs;
}

Bytes reduce_all(const std::vector<Bytes>& inputs, DataType type, ReduceOp op, std::size_t count,
                 double pre = 1.0, double post = 1.0) {
  std::vector<const void*> in;
  for (const Bytes& input : inputs) in.push_back(input.data());
  Bytes out(count * size_of(type));
  void* outs[] = {out.data()};
  reduce(in, outs, count, {type, op, pre, post});
  return out;
}

class EveryTypeAndOp : public testing::TestWithParam<std::tuple<DataType, ReduceOp>> {};

TEST_P(EveryTypeAndOp, MatchesTheOracle) {
  const auto [type, op] = GetParam();
  std::uint64_t seed = 1;
  for (int n = 1; n <= 5; ++n) {
    for (std::size_t count : kCounts) {
      const auto inputs = make_inputs(type, count, n, seed++, test::range_for(type, op));
      const Bytes out = reduce_all(inputs, type, op, count);
      EXPECT_TRUE(test::is_reduction(out, inputs, type, op)) << n << " inputs of " << count;
    }
  }
}

TEST_P(EveryTypeAndOp, ScalesBeforeAndAfter) {
  const auto [type, op] = GetParam();
  if (type == DataType::boolean) return;
  for (auto [pre, post] : {std::pair{2.0, 1.0}, {1.0, 0.5}, {2.0, 0.25}, {0.3, 1.7}}) {
    if (test::is_integer(type) && pre != std::trunc(pre)) continue;
    const auto range = op == ReduceOp::product ? test::Range::products : test::Range::moderate;
    const auto inputs = make_inputs(type, 131, 3, 77, range);
    const Bytes out = reduce_all(inputs, type, op, 131, pre, post);
    // A product of scaled small integers may leave int8; the oracle wraps before the last factor.
    EXPECT_TRUE(test::is_reduction(out, inputs, type, op, {pre, post}))
        << "prescale " << pre << ", postscale " << post;
  }
}

TEST_P(EveryTypeAndOp, WritesSeveralOutputsAlsoOverInputs) {
  const auto [type, op] = GetParam();
  for (std::size_t count : {std::size_t{5}, std::size_t{1000}}) {
    auto inputs = make_inputs(type, count, 3, 5, test::range_for(type, op));
    const Bytes expected = reduce_all(inputs, type, op, count);
    Bytes extra(count * size_of(type));
    const void* in[] = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
    void* out[] = {inputs[1].data(), extra.data(), inputs[0].data()};
    reduce(in, out, count, {type, op, 1.0, 1.0});
    EXPECT_TRUE(test::same_bytes(inputs[0], expected));
    EXPECT_TRUE(test::same_bytes(inputs[1], expected));
    EXPECT_TRUE(test::same_bytes(extra, expected));
  }
}

TEST_P(EveryTypeAndOp, WorksOnUnalignedMemory) {
  const auto [type, op] = GetParam();
  const std::size_t count = 777, bytes = count * size_of(type);
  const auto inputs = make_inputs(type, count, 2, 9, test::range_for(type, op));
  const Bytes expected = reduce_all(inputs, type, op, count);
  for (std::size_t shift : {1, 2, 4, 13}) {
    std::vector<Bytes> shifted(3, Bytes(bytes + 64));
    const void* in[] = {shifted[0].data() + shift, shifted[1].data() + 2 * shift};
    for (int i : {0, 1}) std::memcpy(const_cast<void*>(in[i]), inputs[i].data(), bytes);
    void* out[] = {shifted[2].data() + shift};
    reduce(in, out, count, {type, op, 1.0, 1.0});
    EXPECT_EQ(std::memcmp(out[0], expected.data(), bytes), 0) << "shift " << shift;
  }
}

// An element's bits do not depend on where in the array it stands: the loop's tail and its vector
// body compute the same.
TEST_P(EveryTypeAndOp, BitsDoNotDependOnPosition) {
  const auto [type, op] = GetParam();
  const std::size_t count = 200, width = size_of(type);
  const auto inputs = make_inputs(type, count, 4, 21, test::range_for(type, op));
  const Bytes whole = reduce_all(inputs, type, op, count, 1.0, 0.5);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Bytes> single;
    for (const Bytes& input : inputs)
      single.emplace_back(input.begin() + i * width, input.begin() + (i + 1) * width);
    const Bytes one = reduce_all(single, type, op, 1, 1.0, 0.5);
    ASSERT_EQ(std::memcmp(one.data(), whole.data() + i * width, width), 0) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryTypeAndOp,
                         testing::Combine(testing::ValuesIn(kAllTypes),
                                          testing::ValuesIn(kKernelOps)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) + "_" +
                                  std::string(to_string(std::get<1>(info.param)));
                         });

// The sums of floats in the order of the inputs, one rounding for each addition.
TEST(ReduceKernels, FloatSumsHaveExactlyTheseBits) {
  for (DataType type : test::kFloatTypes) {
    const std::size_t count = 1000;
    const auto inputs = make_inputs(type, count, 4, 3, test::Range::wild);
    Bytes expected(count * size_of(type));
    test::with_type(type, [&]<class T>() {
      using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (std::size_t i = 0; i < count; ++i) {
        auto sum = static_cast<Accumulator>(test::get<T>(inputs[0].data(), i));
        for (int r = 1; r < 4; ++r)
          sum += static_cast<Accumulator>(test::get<T>(inputs[r].data(), i));
        test::put<T>(expected.data(), i, T(sum));
      }
    });
    const Bytes out = reduce_all(inputs, type, ReduceOp::sum, count);
    EXPECT_TRUE(test::same_bytes(out, expected)) << to_string(type);
  }
}

// The loops are compiled once per instruction set; a job may run on machines that differ.
TEST(ReduceKernels, EveryInstructionSetGivesTheSameBits) {
  constexpr ReduceLoop ReduceOps::*kLoops[] = {&ReduceOps::sum, &ReduceOps::min, &ReduceOps::max,
                                               &ReduceOps::product};
  const std::size_t count = 1037;
  for (DataType type : kAllTypes) {
    for (ReduceLoop ReduceOps::*loop : kLoops) {
      for (int n : {1, 2, 3, 5}) {
        for (double scale : {1.0, 0.37}) {
          const auto inputs = make_inputs(type, count, n, 90, test::Range::moderate);
          std::vector<const void*> in;
          for (const Bytes& input : inputs) in.push_back(input.data());
          const auto run = [&](const ReduceTable& table) {
            Bytes out(count * size_of(type));
            void* outs[] = {out.data()};
            ReduceCall call;
            call.inputs = in.data();
            call.input_count = in.size();
            call.outputs = outs;
            call.output_count = 1;
            call.count = count;
            call.scaled = scale != 1.0;
            call.scale = {scale, scale, scale, 1};
            (table.same[static_cast<int>(type)].*loop)(call);
            return out;
          };
          const Bytes expected = run(baseline::kReduceTable);
          for (const InstructionSet set : usable_instruction_sets())
            EXPECT_TRUE(test::same_bytes(run(reduce_table(set)), expected))
                << to_string(set) << ", " << to_string(type) << ", " << n << " inputs, scale "
                << scale;
        }
      }
    }
  }
}

TEST(ReduceKernels, NaNWinsInMinAndMax) {
  for (DataType type : test::kFloatTypes) {
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      for (int at = 0; at < 3; ++at) {
        for (std::size_t count : {std::size_t{1}, std::size_t{40}}) {
          auto inputs = make_inputs(type, count, 3, 8, test::Range::moderate);
          test::with_type(type, [&]<class T>() {
            for (std::size_t i = 0; i < count; i += 3)
              test::put<T>(inputs[at].data(), i, test::from_real<T>(NAN));
            const Bytes out = reduce_all(inputs, type, op, count);
            for (std::size_t i = 0; i < count; ++i)
              EXPECT_EQ(std::isnan(test::to_real(test::get<T>(out.data(), i))), i % 3 == 0)
                  << to_string(type) << " " << to_string(op) << " input " << at << " element " << i;
          });
        }
      }
    }
  }
}

TEST(ReduceKernels, InfinitiesAndNaNPassThroughSums) {
  for (DataType type : test::kFloatTypes) {
    test::with_type(type, [&]<class T>() {
      std::vector<Bytes> inputs(2, Bytes(20 * sizeof(T)));
      for (std::size_t i = 0; i < 20; ++i) {
        test::put<T>(inputs[0].data(), i, test::from_real<T>(INFINITY));
        test::put<T>(inputs[1].data(), i, test::from_real<T>(i % 2 == 0 ? 1.0L : -INFINITY));
      }
      const Bytes out = reduce_all(inputs, type, ReduceOp::sum, 20);
      for (std::size_t i = 0; i < 20; ++i) {
        const long double value = test::to_real(test::get<T>(out.data(), i));
        EXPECT_TRUE(i % 2 == 0 ? value == INFINITY : std::isnan(value)) << to_string(type);
      }
    });
  }
}

// Halves whose float32 sum is exact and lies between two float16 values: rounding each partial sum
// to float16 would lose the small ones.
TEST(ReduceKernels, HalvesAreRoundedOnce) {
  std::vector<Bytes> inputs(5, Bytes(40 * 2));
  for (int r = 0; r < 5; ++r)
    for (std::size_t i = 0; i < 40; ++i)
      test::put(inputs[r].data(), i, float16(r == 0 ? 2048.0F : 0.5F));
  const Bytes out = reduce_all(inputs, DataType::float16, ReduceOp::sum, 40);
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_EQ(static_cast<float>(test::get<float16>(out.data(), i)), 2050.0F);
}

TEST(ReduceKernels, PartialResultsStayInFloat32) {
  for (DataType type : {DataType::float16, DataType::bfloat16}) {
    const std::size_t count = 99;
    const auto inputs = make_inputs(type, count, 4, 4, test::Range::moderate);
    const Bytes direct = reduce_all(inputs, type, ReduceOp::sum, count, 0.7, 0.3);
    std::vector<float> partial(count);
    void* to_partial[] = {partial.data()};
    const void* in[] = {inputs[0].data(), inputs[1].data(), inputs[2].data(), inputs[3].data()};
    reduce(in, type, to_partial, DataType::float32, count, {type, ReduceOp::sum, 0.7, 1.0});
    Bytes out(count * 2);
    const void* from_partial[] = {partial.data()};
    void* to_out[] = {out.data()};
    reduce(from_partial, DataType::float32, to_out, type, count, {type, ReduceOp::sum, 1.0, 0.3});
    EXPECT_TRUE(test::same_bytes(out, direct)) << to_string(type);
  }
}

// The number of ranks need not fit the type of the elements.
template <class T>
void expect_exact_averages(DataType type) {
  for (const std::int64_t divisor : {127, 128, 255, 256, 257, 32767, 32768, 65536, 1 << 24}) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{700}}) {
      std::vector<T> in(count), out(count);
      for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<T>(i * 37 + 100);
      const void* inputs[] = {in.data()};
      void* outputs[] = {out.data()};
      reduce(inputs, outputs, count, {type, ReduceOp::sum, 1.0, 1.0, divisor});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(static_cast<std::int64_t>(out[i]), static_cast<std::int64_t>(in[i]) / divisor)
            << to_string(type) << " by " << divisor;
    }
  }
}

TEST(ReduceKernels, AveragesOfIntegersDivideByAnyNumberOfRanks) {
  expect_exact_averages<std::uint8_t>(DataType::uint8);
  expect_exact_averages<std::int8_t>(DataType::int8);
  expect_exact_averages<std::int16_t>(DataType::int16);
  expect_exact_averages<std::int32_t>(DataType::int32);
  expect_exact_averages<std::int64_t>(DataType::int64);
}

TEST(ReduceKernels, CopiesAnyLengthAndAlignment) {
  for (std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 4097UL, (1UL << 22) + 13}) {
    const Bytes from = make_values(DataType::uint8, bytes + 3, 12, test::Range::wild);
    Bytes to(bytes + 8, std::byte{0x5a});
    copy_bytes(to.data() + 5, from.data() + 3, bytes);
    EXPECT_EQ(std::memcmp(to.data() + 5, from.data() + 3, bytes), 0) << bytes;
    EXPECT_EQ(to[4], std::byte{0x5a});
    EXPECT_EQ(to[bytes + 5], std::byte{0x5a});
  }
}

}  // namespace
}  // namespace kolo::comm

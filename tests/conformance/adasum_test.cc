// Adasum for any number of ranks, and grouped allreduce.
#include "conformance/conformance.h"

namespace kolo::test {
namespace {

class Adasum : public Conformance {
 protected:
  void check(DataType type, std::size_t count, const Layout& layout, Scaling scaling = {},
             std::uint64_t seed = 1) {
    SCOPED_TRACE(testing::Message() << count << " " << to_string(type) << ", " << layout.name);
    const auto inputs = make_inputs(type, count, seed, Range::moderate);
    check_inputs(inputs, type, layout, scaling);
  }

  void check_inputs(const std::vector<Bytes>& inputs, DataType type, const Layout& layout,
                    Scaling scaling = {}) {
    const std::size_t count = inputs[0].size() / size_of(type);
    std::vector<Bytes> outputs(size());
    run([&](Communicator& comm) {
      outputs[comm.rank()] = apply(
          comm, layout, inputs[comm.rank()], inputs[0].size(), [&](const void* in, void* out) {
            comm.allreduce(in, out, count, type, ReduceOp::adasum, scaling);
          });
    });
    EXPECT_TRUE(is_adasum(outputs[0], inputs, type, scaling));
    for (int r = 1; r < size(); ++r)
      EXPECT_TRUE(same_bytes(outputs[r], outputs[0])) << "rank " << r;
  }
};

TEST_P(Adasum, EveryFloatTypeAndSize) {
  std::size_t layout = 0;
  for (DataType type : kFloatTypes)
    for (std::size_t count : {0, 1, 3, 17, 1023, 4099, 70'001})
      check(type, count, kLayouts[layout++ % std::size(kLayouts)]);
}

TEST_P(Adasum, Scaling) { check(DataType::float32, 500, kLayouts[0], {0.5, 3.0}); }

// Equal gradients are averaged.
TEST_P(Adasum, EqualInputsComeBack) {
  const Bytes one = make_values(DataType::float64, 333, 5, Range::moderate);
  check_inputs(std::vector<Bytes>(size(), one), DataType::float64, kLayouts[2]);
  run([&](Communicator& comm) {
    std::vector<float> data(100, 3.5F);
    comm.allreduce(std::span(data), ReduceOp::adasum);
    for (float x : data) EXPECT_FLOAT_EQ(x, 3.5F);
  });
}

// Orthogonal gradients are added.
TEST_P(Adasum, OrthogonalInputsAreAdded) {
  run([&](Communicator& comm) {
    std::vector<double> data(64, 0.0);
    data[comm.rank()] = 2.0 + comm.rank();
    comm.allreduce(std::span(data), ReduceOp::adasum);
    for (int i = 0; i < 64; ++i) EXPECT_DOUBLE_EQ(data[i], i < comm.size() ? 2.0 + i : 0.0);
  });
}

TEST_P(Adasum, ZeroAndTinyInputsAreAddedWithoutDivision) {
  std::vector<Bytes> inputs = make_inputs(DataType::float64, 50, 9, Range::moderate);
  inputs[0].assign(inputs[0].size(), std::byte{0});
  check_inputs(inputs, DataType::float64, kLayouts[0]);
  for (std::size_t i = 0; i < 50; ++i) put(inputs[size() - 1].data(), i, 1e-100);
  check_inputs(inputs, DataType::float64, kLayouts[1]);
  for (Bytes& input : inputs) input.assign(input.size(), std::byte{0});
  check_inputs(inputs, DataType::float64, kLayouts[2]);
}

KOLO_CONFORMANCE(Adasum, all_arrangements());

class GroupedAllreduce : public Conformance {
 protected:
  struct Tensor {
    DataType type;
    std::size_t count;
  };

  void check(const std::vector<Tensor>& tensors, ReduceOp op, const Layout& layout,
             Scaling scaling = {}) {
    std::vector<std::vector<Bytes>> inputs;  // tensor, rank
    for (std::size_t t = 0; t < tensors.size(); ++t)
      inputs.push_back(make_inputs(tensors[t].type, tensors[t].count, 31 * t,
                                   op == ReduceOp::product ? Range::products : Range::moderate));
    std::vector<std::vector<Bytes>> outputs(tensors.size(), std::vector<Bytes>(size()));
    run([&](Communicator& comm) {
      const Where where = comm.rank() % 2 == 0 ? layout.even : layout.odd;
      std::vector<Place> in, out;
      std::vector<TensorRef> refs;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        in.emplace_back(comm, where, inputs[t][comm.rank()]);
        out.emplace_back(comm, where, inputs[t][comm.rank()].size());
        refs.push_back({in[t].data(), layout.in_place ? in[t].data() : out[t].data(),
                        tensors[t].count, tensors[t].type});
      }
      comm.grouped_allreduce(refs, op, scaling);
      for (std::size_t t = 0; t < tensors.size(); ++t)
        outputs[t][comm.rank()] = layout.in_place ? in[t].bytes() : out[t].bytes();
    });
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      SCOPED_TRACE(testing::Message()
                   << to_string(op) << ", tensor " << t << ": " << tensors[t].count << " "
                   << to_string(tensors[t].type) << ", " << layout.name);
      if (op == ReduceOp::adasum)
        EXPECT_TRUE(is_adasum(outputs[t][0], inputs[t], tensors[t].type, scaling));
      else
        EXPECT_TRUE(is_reduction(outputs[t][0], inputs[t], tensors[t].type, op, scaling));
      for (int r = 1; r < size(); ++r)
        EXPECT_TRUE(same_bytes(outputs[t][r], outputs[t][0])) << "rank " << r;
    }
  }
};

TEST_P(GroupedAllreduce, OneTypeSmallAndLarge) {
  for (const Layout& layout : kLayouts) {
    check({{DataType::float32, 3}, {DataType::float32, 5}}, ReduceOp::average, layout);
    check({{DataType::float32, 7000}, {DataType::float32, 1}, {DataType::float32, 33'333}},
          ReduceOp::sum, layout);
  }
}

TEST_P(GroupedAllreduce, MixedTypesAndEmptyMembers) {
  std::vector<Tensor> tensors;
  for (DataType type : kAllTypes)
    if (type != DataType::boolean) tensors.push_back({type, 1 + 37 * tensors.size()});
  tensors.insert(tensors.begin(), {DataType::float32, 0});
  tensors.insert(tensors.begin() + 4, {DataType::int8, 0});
  tensors.push_back({DataType::float64, 0});
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::max, ReduceOp::product})
    for (int layout : {0, 2, 5}) check(tensors, op, kLayouts[layout]);
  check(tensors, ReduceOp::average, kLayouts[1], {2.0, 0.5});
  tensors.push_back({DataType::bfloat16, 90'001});
  check(tensors, ReduceOp::sum, kLayouts[0]);
}

TEST_P(GroupedAllreduce, EmptyGroupAndGroupOfEmptyTensors) {
  check({}, ReduceOp::sum, kLayouts[0]);
  check({{DataType::float32, 0}, {DataType::int64, 0}}, ReduceOp::sum, kLayouts[0]);
}

TEST_P(GroupedAllreduce, AdasumTreatsEachTensorByItself) {
  check({{DataType::float32, 100}, {DataType::float64, 7}, {DataType::float16, 3000}},
        ReduceOp::adasum, kLayouts[0]);
}

TEST_P(GroupedAllreduce, ManyTensors) {
  std::vector<Tensor> tensors;
  Random random(8);
  for (int i = 0; i < 300; ++i) tensors.push_back({DataType::float32, random.below(400)});
  check(tensors, ReduceOp::average, kLayouts[1]);
}

KOLO_CONFORMANCE(GroupedAllreduce, all_arrangements());

}  // namespace
}  // namespace kolo::test

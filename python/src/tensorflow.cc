// Collectives as ops of TensorFlow, for graphs: through TensorFlow's C interface for kernels.
//
// Each op has a name, the same on every rank, because all ranks build the same graph. A kernel
// waits for the other ranks on a thread of the graph. The interface has kernels that return before
// they are done, too, but hands them a callback that lives no longer than the call. Inside
// tf.function ops with a state run in the order of the traced program, on every rank alike, so
// nobody waits for an op that others have not come to; graphs of TensorFlow 1 have no order, and
// need as many threads as ops that can wait at once (see kolo/tensorflow/_graph_op.py).
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>

#include "keeper.h"
#include "kolo/kolo.h"
#include "module.h"
#include "runtime.h"
#include "tensorflow_interface.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using tensorflow::Checked;
using tensorflow::Construction;
using tensorflow::KernelContext;
using tensorflow::ShapeContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::tf;

constexpr int kInt32 = 3;

/// By TensorFlow's number of an element type. Elements of uint16 can be moved only, as int16.
DataType type_of(const Tensor* tensor) {
  switch (tf.type(tensor)) {
    case 1: return DataType::float32;
    case 2: return DataType::float64;
    case kInt32: return DataType::int32;
    case 4: return DataType::uint8;
    case 5: return DataType::int16;
    case 6: return DataType::int8;
    case 9: return DataType::int64;
    case 10: return DataType::boolean;
    case 14: return DataType::bfloat16;
    case 17: return DataType::int16;
    case 19: return DataType::float16;
    default:
      throw_error(ErrorCode::invalid_argument,
                  "tensors of TensorFlow's type {} cannot be exchanged", tf.type(tensor));
  }
}

Shape shape_of(const Tensor* tensor) {
  Shape shape;
  for (int d = 0; d < tf.rank(tensor); ++d) shape.push_back(tf.dimension(tensor, d));
  return shape;
}

std::size_t row_elements(const Shape& shape) {
  return shape.empty() ? 1 : element_count(Shape(shape.begin() + 1, shape.end()));
}

/// One place in a graph: what the op was given when the graph was built.
struct Place {
  std::string name;
  ReduceOptions reduction;
  int root = 0;
};

void* create_place(Construction* construction) {
  Checked checked;
  try {
    auto place = std::make_unique<Place>();
    std::int32_t count = 0, bytes = 0;
    checked.call(tf.attribute_size, construction, "tensor_name", &count, &bytes);
    place->name.resize(static_cast<std::size_t>(bytes));
    checked.call(tf.attribute_text, construction, "tensor_name", place->name.data(),
                 place->name.size());
    const auto number = [&](const char* name) {
      std::int64_t value = 0;
      checked.call(tf.attribute_number, construction, name, &value);
      return value;
    };
    place->reduction = {static_cast<ReduceOp>(number("reduce_op")),
                        {std::bit_cast<double>(number("prescale_bits")),
                         std::bit_cast<double>(number("postscale_bits"))},
                        ProcessSetId{static_cast<int>(number("process_set"))}};
    place->root = static_cast<int>(number("root_rank"));
    return place.release();
  } catch (const Error& error) {
    tf.construction_failed(construction, checked.with(error));
    return nullptr;
  }
}

void delete_place(void* state) { delete static_cast<Place*>(state); }

/// The inputs and outputs of one call. TensorFlow's tensors live until they are deleted.
class Call {
 public:
  explicit Call(KernelContext* context) : context_(context) {}
  ~Call() {
    for (Tensor* tensor : held_) tf.delete_tensor(tensor);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] int input_count() const { return tf.input_count(context_); }
  Tensor* input(int index) {
    Tensor* tensor = nullptr;
    Checked().call(tf.input, context_, index, &tensor);
    held_.push_back(tensor);
    return tensor;
  }
  /// The memory of a new output.
  void* output(int index, int type, const Shape& shape, std::size_t element_bytes) {
    Tensor* tensor =
        Checked().call(tf.allocate_output, context_, index, type, shape.data(),
                       static_cast<int>(shape.size()), element_count(shape) * element_bytes);
    held_.push_back(tensor);
    return tf.data(tensor);
  }
  /// Of the shape and type of an input.
  void* output_like(int index, const Tensor* given) {
    return output(index, tf.type(given), shape_of(given), size_of(type_of(given)));
  }
  /// For results whose number of rows is not known before.
  OutputAllocator rows_like(int index, const Tensor* given) {
    return [this, index, given](std::span<const std::size_t> counts) {
      Shape shape = shape_of(given);
      const std::size_t row = row_elements(shape);
      const auto elements = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      if (!shape.empty() && row != 0) shape[0] = static_cast<std::int64_t>(elements / row);
      return output(index, tf.type(given), shape, size_of(type_of(given)));
    };
  }

 private:
  KernelContext* context_;
  std::vector<Tensor*> held_;
};

using Counts = std::vector<std::size_t>;

Handle start_allreduce(const Place& place, Call& call) {
  std::vector<TensorArg> tensors;
  for (int i = 0; i < call.input_count(); ++i) {
    const Tensor* given = call.input(i);
    tensors.push_back(
        {tf.data(given), call.output_like(i, given), shape_of(given), type_of(given)});
  }
  return running_engine()->grouped_allreduce_async(place.name, std::move(tensors), place.reduction);
}

Handle start_reducescatter(const Place& place, Call& call) {
  const Tensor* given = call.input(0);
  Shape shape = shape_of(given);
  if (!shape.empty()) {
    const ProcessSetId set = place.reduction.process_set;
    const std::int64_t members = running_engine()->size(set);
    const std::int64_t mine = running_engine()->rank(set);
    shape[0] = shape[0] / members + (mine < shape[0] % members ? 1 : 0);
  }
  void* output = call.output(0, tf.type(given), shape, size_of(type_of(given)));
  return running_engine()->reducescatter_async(
      place.name, {tf.data(given), output, shape_of(given), type_of(given)}, place.reduction);
}

Handle start_allgather(const Place& place, Call& call) {
  const Tensor* given = call.input(0);
  return running_engine()->allgather_async(place.name, tf.data(given), shape_of(given),
                                           type_of(given), call.rows_like(0, given),
                                           place.reduction.process_set);
}

Handle start_broadcast(const Place& place, Call& call) {
  const Tensor* given = call.input(0);
  void* output = call.output_like(0, given);
  if (const std::size_t bytes = tf.bytes(given)) std::memcpy(output, tf.data(given), bytes);
  return running_engine()->broadcast_async(place.name, output, shape_of(given), type_of(given),
                                           place.root, place.reduction.process_set);
}

Handle start_alltoall(const Place& place, Call& call) {
  const Tensor* given = call.input(0);
  const Tensor* splits = call.input(1);
  const auto* rows = static_cast<const std::int32_t*>(tf.data(splits));
  Counts parts;
  for (std::size_t i = 0; i < element_count(shape_of(splits)); ++i) {
    if (rows[i] < 0)
      throw_error(ErrorCode::invalid_argument, "alltoall '{}': splits must not be negative",
                  place.name);
    parts.push_back(static_cast<std::size_t>(rows[i]));
  }
  return running_engine()->alltoall_async(place.name, tf.data(given), shape_of(given),
                                          type_of(given), std::move(parts),
                                          call.rows_like(0, given), place.reduction.process_set);
}

void nothing_more(const Counts&, Call&) {}

/// How many rows came from each rank.
void give_rows(const Counts& rows, Call& call) {
  auto* output = static_cast<std::int32_t*>(
      call.output(1, kInt32, {static_cast<std::int64_t>(rows.size())}, sizeof(std::int32_t)));
  for (std::size_t i = 0; i < rows.size(); ++i) output[i] = static_cast<std::int32_t>(rows[i]);
}

template <Handle (*start)(const Place&, Call&), void (*finish)(const Counts&, Call&) = nothing_more>
void compute(void* state, KernelContext* context) {
  bool is_under_way = false;
  try {
    Call call(context);
    const Handle handle = start(*static_cast<const Place*>(state), call);
    is_under_way = true;
    finish(handle.wait(), call);
  } catch (const Error& error) {
    if (is_under_way) Keeper::of_this_process().note_failure(error);
    Checked status;
    tf.failed(context, status.with(error, is_under_way));
  }
}

/// Each output has the shape of its input.
void same_shapes(ShapeContext* context, Status* status) {
  for (std::int64_t i = 0; i < tf.shape_count(context); ++i) {
    tensorflow::Shape* shape = tf.new_shape();
    tf.input_shape(context, static_cast<int>(i), shape, status);
    if (tf.code(status) == 0) tf.set_output_shape(context, static_cast<int>(i), shape, status);
    tf.delete_shape(shape);
  }
}

void unknown_shapes(ShapeContext* context, Status* status) {
  tf.set_unknown_shapes(context, status);
}

struct Kind {
  const char* name;
  std::string type;
  std::vector<const char*> inputs, outputs;
  tensorflow::InferShapes shapes;
  tensorflow::Compute compute;
};

void register_kind(const Kind& kind) {
  Checked checked;
  tensorflow::OpBuilder* op = tf.new_op(kind.name);
  tf.add_attribute(op, kind.type.c_str());
  tf.add_attribute(op, "tensor_name: string");
  for (const char* number :
       {"reduce_op", "process_set", "prescale_bits", "postscale_bits", "root_rank"})
    tf.add_attribute(op, (std::string(number) + ": int = 0").c_str());
  for (const char* input : kind.inputs) tf.add_input(op, input);
  for (const char* output : kind.outputs) tf.add_output(op, output);
  tf.set_stateful(op, true);
  tf.set_shapes(op, kind.shapes);
  checked.call(tf.register_op, op);
  tensorflow::KernelBuilder* kernel =
      tf.new_kernel(kind.name, "CPU", &create_place, kind.compute, &delete_place);
  checked.call(tf.register_kernel, kind.name, kernel);
}

void register_ops(const std::string& library) {
  tensorflow::load_functions(library);
  const std::string reduced =
      "float, double, int32, uint8, int16, int8, int64, bool, bfloat16, half";
  const std::string moved = "T: {" + reduced + ", uint16}";
  register_kind({"KoloAllreduce",
                 "T: list({" + reduced + "}) >= 1",
                 {"tensors: T"},
                 {"reduced: T"},
                 &same_shapes,
                 &compute<start_allreduce>});
  register_kind({"KoloReducescatter",
                 "T: {" + reduced + "}",
                 {"tensor: T"},
                 {"reduced: T"},
                 &unknown_shapes,
                 &compute<start_reducescatter>});
  register_kind({"KoloAllgather",
                 moved,
                 {"tensor: T"},
                 {"gathered: T"},
                 &unknown_shapes,
                 &compute<start_allgather>});
  register_kind({"KoloBroadcast",
                 moved,
                 {"tensor: T"},
                 {"sent: T"},
                 &same_shapes,
                 &compute<start_broadcast>});
  register_kind({"KoloAlltoall",
                 moved,
                 {"tensor: T", "splits: int32"},
                 {"collected: T", "rows: int32"},
                 &unknown_shapes,
                 &compute<start_alltoall, give_rows>});
}

}  // namespace

void bind_tensorflow(py::module_& m) { m.def("register_tensorflow_ops", &register_ops); }

}  // namespace kolo::python

// Collectives inside programs that XLA has compiled (jax.jit), without Python: foreign functions.
//
// XLA calls them from its own threads, in whatever order it likes, and has few threads. So none of
// them waits: each submits a named operation to the engine and returns a promise, which the Keeper
// keeps when the operation is done. The names are the same on every rank, because all ranks trace
// the same program.
#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "keeper.h"
#include "kolo/kolo.h"
#include "module.h"
#include "runtime.h"
#include "xla_frames.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

// --- what XLA hands over -------------------------------------------------------------------------

/// By XLA's number of an element type.
DataType type_of(const xla::Array& array) {
  switch (array.type) {
    case 1: return DataType::boolean;
    case 2: return DataType::int8;
    case 3: return DataType::int16;
    case 4: return DataType::int32;
    case 5: return DataType::int64;
    case 6: return DataType::uint8;
    case 10: return DataType::float16;
    case 11: return DataType::float32;
    case 12: return DataType::float64;
    case 16: return DataType::bfloat16;
    default:
      throw_error(ErrorCode::unsupported, "arrays of XLA's element type {} cannot be exchanged",
                  array.type);
  }
}

const xla::Array& array_at(const xla::Arrays& arrays, std::int64_t place) {
  return *static_cast<const xla::Array*>(arrays.values[place]);
}

TensorArg tensor_at(const xla::Frame& frame, std::int64_t place) {
  const xla::Array& from = array_at(frame.arguments, place);
  return {from.data, array_at(frame.results, place).data,
          Shape(from.dimensions, from.dimensions + from.rank), type_of(from)};
}

const void* attribute(const xla::Frame& frame, std::string_view name) {
  for (std::int64_t i = 0; i < frame.attributes.count; ++i)
    if (std::string_view(frame.attributes.names[i]->data, frame.attributes.names[i]->size) == name)
      return frame.attributes.values[i];
  throw_error(ErrorCode::invalid_argument, "a compiled program gives no '{}'", name);
}

std::string text_of(const xla::Frame& frame, std::string_view name) {
  const auto* text = static_cast<const xla::Text*>(attribute(frame, name));
  return {text->data, text->size};
}

int number_of(const xla::Frame& frame, std::string_view name) {
  return *static_cast<const std::int32_t*>(
      static_cast<const xla::Scalar*>(attribute(frame, name))->value);
}

xla::Error* to_xla(const xla::Api& api, const Error& error) {
  const bool is_callers = error.code() == ErrorCode::invalid_argument;
  xla::ErrorOrder order;
  order.message = error.message().c_str();
  order.code = is_callers                             ? xla::kInvalidArgument
               : error.code() == ErrorCode::peer_lost ? xla::kUnavailable
                                                      : xla::kFailedPrecondition;
  return api.create_error(&order);
}

// --- the functions -------------------------------------------------------------------------------

/// Calls `submit(frame)`, which starts the operation. Before a program runs, XLA asks which version
/// a function was made for, and gives it the chance to prepare.
xla::Error* run(xla::Frame* frame, Handle (*submit)(const xla::Frame&)) {
  for (xla::Extension* one = frame->extensions; one != nullptr; one = one->next)
    if (one->type == xla::kMetadataExtension) {
      xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(one)->metadata;
      metadata.version.major = xla::kMajor;
      metadata.version.minor = xla::kMinor;
      metadata.traits = 0;
      return nullptr;
    }
  if (frame->stage != xla::Stage::execute) return nullptr;
  try {
    Handle handle = submit(*frame);
    xla::FutureOrder order;
    if (xla::Error* error = frame->api->create_future(&order)) return error;
    frame->future = order.future;
    Keeper::of_this_process().add(std::move(handle),
                                  [api = frame->api, future = order.future](const Error* error) {
                                    if (error != nullptr) {
                                      xla::FutureFailure failure;
                                      failure.future = future;
                                      failure.error = to_xla(*api, *error);
                                      api->set_failure(&failure);
                                    } else {
                                      xla::FutureOrder done;
                                      done.future = future;
                                      api->set_available(&done);
                                    }
                                  });
    return nullptr;
  } catch (const Error& error) {
    return to_xla(*frame->api, error);
  }
}

Handle submit_allreduce(const xla::Frame& frame) {
  std::vector<TensorArg> tensors;
  for (std::int64_t i = 0; i < frame.arguments.count; ++i) tensors.push_back(tensor_at(frame, i));
  return running_engine()->grouped_allreduce_async(
      text_of(frame, "name"), std::move(tensors),
      {static_cast<ReduceOp>(number_of(frame, "op")), {}, ProcessSetId{number_of(frame, "set")}});
}

Handle submit_broadcast(const xla::Frame& frame) {
  TensorArg tensor = tensor_at(frame, 0);
  const std::size_t bytes = element_count(tensor.shape) * size_of(tensor.type);
  std::copy_n(static_cast<const std::byte*>(tensor.input), bytes,
              static_cast<std::byte*>(tensor.output));
  return running_engine()->broadcast_async(
      text_of(frame, "name"), tensor.output, std::move(tensor.shape), tensor.type,
      number_of(frame, "root"), ProcessSetId{number_of(frame, "set")});
}

Handle submit_allgather(const xla::Frame& frame) {
  TensorArg tensor = tensor_at(frame, 0);
  const xla::Array& result = array_at(frame.results, 0);
  const std::size_t room = element_count(Shape(result.dimensions, result.dimensions + result.rank));
  return running_engine()->allgather_async(
      text_of(frame, "name"), tensor.input, std::move(tensor.shape), tensor.type,
      [output = tensor.output, room](std::span<const std::size_t> counts) {
        if (std::accumulate(counts.begin(), counts.end(), std::size_t{0}) != room)
          throw_error(ErrorCode::invalid_argument,
                      "allgather inside jit: the arrays of all ranks must have one shape");
        return output;
      },
      ProcessSetId{number_of(frame, "set")});
}

template <Handle (*submit)(const xla::Frame&)>
xla::Error* function(xla::Frame* frame) {
  return run(frame, submit);
}

py::capsule capsule_of(xla::Function function) {
  return py::capsule(reinterpret_cast<void*>(function));
}

}  // namespace

void bind_xla(py::module_& m) {
  m.def("xla_functions", [] {
    py::dict functions;
    functions["kolo_allreduce"] = capsule_of(&function<&submit_allreduce>);
    functions["kolo_broadcast"] = capsule_of(&function<&submit_broadcast>);
    functions["kolo_allgather"] = capsule_of(&function<&submit_allgather>);
    return functions;
  });
  m.def("last_failure_in_graph", []() -> py::object {
    const auto failure = Keeper::of_this_process().last_failure();
    if (!failure) return py::none();
    const py::object rank = failure->rank() ? py::cast(*failure->rank()) : py::object(py::none());
    return py::make_tuple(std::string(to_string(failure->code())), failure->message(), rank);
  });
}

}  // namespace kolo::python

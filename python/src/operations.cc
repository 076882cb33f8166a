// Named asynchronous operations on memory of somebody else.
//
// A Pending is one operation under way. It keeps the tensors of the operation alive; if Python
// drops it too early, they are kept until the operation is done all the same. Results whose size is
// not known before (allgather, alltoall) are written to memory that kolo allocates: no thread of
// the engine ever calls Python, so nothing can go wrong when the interpreter ends.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "base/errors.h"
#include "blocking.h"
#include "errors.h"
#include "kolo/kolo.h"
#include "memory.h"
#include "module.h"
#include "runtime.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

/// What a thread of the engine allocated for a result.
struct Result {
  Memory memory;
};

class Pending {
 public:
  Pending(Handle handle, py::object keep, std::shared_ptr<Result> result = nullptr)
      : handle_(std::move(handle)), keep_(std::move(keep)), result_(std::move(result)) {
    sweep();
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (!handle_.poll()) abandoned().push_back({handle_, std::move(keep_), result_});
  }

  [[nodiscard]] bool poll() const {
    check();
    return handle_.poll();
  }

  std::vector<std::size_t> wait() {
    check();
    return as_operation([&] {
      std::vector<std::size_t> counts = blocking([&] { return handle_.wait(); });
      keep_ = py::none();
      return counts;
    });
  }

  [[nodiscard]] Memory result() const {
    if (result_ == nullptr)
      throw_error(ErrorCode::failed_precondition, "operation '{}' has no result of its own",
                  handle_.name());
    return result_->memory;
  }
  [[nodiscard]] const std::string& name() const { return handle_.name(); }

 private:
  struct Abandoned {
    Handle handle;
    py::object keep;
    std::shared_ptr<Result> result;
  };
  static std::deque<Abandoned>& abandoned() {
    static auto* all =
        new std::deque<Abandoned>;  // Python objects must not outlive the interpreter
    return *all;
  }
  static void sweep() {
    std::erase_if(abandoned(), [](const Abandoned& one) { return one.handle.poll(); });
  }
  void check() const {
    if (!is_initialized())
      throw OperationFailed{
          Error(ErrorCode::cancelled,
                "operation '" + handle_.name() + "': kolo was shut down before it was waited for")};
    check_running();
  }

  Handle handle_;
  py::object keep_;
  std::shared_ptr<Result> result_;
};

using Shaped = std::vector<std::int64_t>;
using Tensor = std::tuple<std::uintptr_t, std::uintptr_t, Shaped, int>;

TensorArg tensor_arg(const Tensor& tensor) {
  const auto& [input, output, shape, type] = tensor;
  return {reinterpret_cast<const void*>(input), reinterpret_cast<void*>(output), shape,
          static_cast<DataType>(type)};
}

ReduceOptions reduce_options(int op, double prescale, double postscale, int set) {
  return {static_cast<ReduceOp>(op), {prescale, postscale}, ProcessSetId{set}};
}

OutputAllocator allocator_into(const std::shared_ptr<Result>& result, int type) {
  return [result, type](std::span<const std::size_t> counts) -> void* {
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    result->memory = Memory::on_heap(total * size_of(static_cast<DataType>(type)));
    return result->memory.data;
  };
}

std::unique_ptr<Pending> allreduce_async(const std::string& name, const Tensor& tensor, int op,
                                         double prescale, double postscale, int set,
                                         py::object keep) {
  return std::make_unique<Pending>(
      running_engine()->allreduce_async(name, tensor_arg(tensor),
                                        reduce_options(op, prescale, postscale, set)),
      std::move(keep));
}

std::unique_ptr<Pending> grouped_allreduce_async(const std::string& name,
                                                 const std::vector<Tensor>& tensors, int op,
                                                 double prescale, double postscale, int set,
                                                 py::object keep) {
  std::vector<TensorArg> arguments;
  for (const Tensor& tensor : tensors) arguments.push_back(tensor_arg(tensor));
  return std::make_unique<Pending>(
      running_engine()->grouped_allreduce_async(name, std::move(arguments),
                                                reduce_options(op, prescale, postscale, set)),
      std::move(keep));
}

std::unique_ptr<Pending> reducescatter_async(const std::string& name, const Tensor& tensor, int op,
                                             double prescale, double postscale, int set,
                                             py::object keep) {
  return std::make_unique<Pending>(
      running_engine()->reducescatter_async(name, tensor_arg(tensor),
                                            reduce_options(op, prescale, postscale, set)),
      std::move(keep));
}

std::unique_ptr<Pending> allgather_async(const std::string& name, std::uintptr_t input,
                                         const Shaped& shape, int type, int set, py::object keep) {
  auto result = std::make_shared<Result>();
  Handle handle = running_engine()->allgather_async(
      name, reinterpret_cast<const void*>(input), shape, static_cast<DataType>(type),
      allocator_into(result, type), ProcessSetId{set});
  return std::make_unique<Pending>(std::move(handle), std::move(keep), std::move(result));
}

std::unique_ptr<Pending> broadcast_async(const std::string& name, std::uintptr_t data,
                                         const Shaped& shape, int type, int root, int set,
                                         py::object keep) {
  return std::make_unique<Pending>(
      running_engine()->broadcast_async(name, reinterpret_cast<void*>(data), shape,
                                        static_cast<DataType>(type), root, ProcessSetId{set}),
      std::move(keep));
}

std::unique_ptr<Pending> alltoall_async(const std::string& name, std::uintptr_t input,
                                        const Shaped& shape, int type,
                                        std::vector<std::size_t> splits, int set, py::object keep) {
  auto result = std::make_shared<Result>();
  Handle handle = running_engine()->alltoall_async(
      name, reinterpret_cast<const void*>(input), shape, static_cast<DataType>(type),
      std::move(splits), allocator_into(result, type), ProcessSetId{set});
  return std::make_unique<Pending>(std::move(handle), std::move(keep), std::move(result));
}

}  // namespace

void bind_operations(py::module_& m) {
  py::class_<Pending>(m, "Pending", "One operation under way.")
      .def("poll", &Pending::poll, "Whether wait() would return at once.")
      .def("wait", &Pending::wait,
           "Waits for the end and raises what went wrong. Returns what each rank contributed: "
           "elements for allgather, rows for alltoall.")
      .def("result", &Pending::result, "The memory that kolo allocated for the result.")
      .def_property_readonly("name", &Pending::name);
  m.def("allreduce_async", &allreduce_async);
  m.def("grouped_allreduce_async", &grouped_allreduce_async);
  m.def("reducescatter_async", &reducescatter_async);
  m.def("allgather_async", &allgather_async);
  m.def("broadcast_async", &broadcast_async);
  m.def("alltoall_async", &alltoall_async);
  m.def("barrier_async", [](int set) {
    return std::make_unique<Pending>(running_engine()->barrier_async(ProcessSetId{set}),
                                     py::none());
  });
}

}  // namespace kolo::python

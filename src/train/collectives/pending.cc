// An operation on tensors submits one or several operations of the engine and keeps the tensors
// that these read and write. wait() collects the results: outputs whose size was not known before
// are appended, `finish` does what is left to do on this rank, and results are copied back where
// the caller wanted them in place or on another device. A handle that is dropped is waited for,
// since the engine still uses its memory.
#include "train/collectives/pending.h"

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "train/dtype.h"

namespace kolo {
namespace train {

PendingTensors::~PendingTensors() {
  if (done) return;
  for (const Handle& handle : handles) {
    try {
      engine->synchronize(handle);
    } catch (const Error&) {
      // Nobody asked for this operation's result.
    }
  }
}

void PendingTensors::wait() {
  if (done) return;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    std::vector<std::size_t> counts = engine->synchronize(handles[i]);
    if (i == 0) splits.assign(counts.begin(), counts.end());
  }
  for (const auto& late : late_outputs) outputs.push_back(*late);
  torch::NoGradGuard no_grad;
  if (finish) finish(*this);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].is_same(outputs[i])) targets[i].copy_(outputs[i]);
    outputs[i] = targets[i];
  }
  inputs.clear();
  done = true;
}

Engine& engine_of(const CollectiveOptions& options) {
  return options.engine != nullptr ? *options.engine : engine();
}

torch::Tensor on_host(const torch::Tensor& tensor) {
  torch::Tensor plain = tensor.detach();
  if (plain.is_cuda()) {
    torch::Tensor staged =
        torch::empty(plain.sizes(), torch::TensorOptions(plain.scalar_type()).pinned_memory(true));
    return staged.copy_(plain);
  }
  return plain.is_cpu() ? plain.contiguous() : plain.cpu().contiguous();
}

Shape shape_of(const torch::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

TensorArg argument(const torch::Tensor& input, const torch::Tensor& output) {
  TensorArg argument;
  argument.input = input.data_ptr();
  argument.output = output.data_ptr();
  argument.shape = shape_of(input);
  argument.type = data_type(input.scalar_type());
  return argument;
}

ReduceOptions reduce_options(const CollectiveOptions& options) {
  ReduceOptions reduce;
  reduce.op = options.op;
  reduce.scaling = {options.prescale_factor, options.postscale_factor};
  reduce.process_set = options.process_set;
  return reduce;
}

std::string member_name(const std::string& base, std::size_t i, std::size_t n) {
  if (base.empty()) return base;
  return base + "_" + std::to_string(i) + "of" + std::to_string(n);
}

void check_rows(const torch::Tensor& tensor, const char* what) {
  if (tensor.dim() == 0)
    throw_error(ErrorCode::invalid_argument,
                "{}: the tensor is a scalar, but it needs at least one dimension", what);
  const auto row = tensor.sizes().slice(1);
  if (std::find(row.begin(), row.end(), 0) != row.end())
    throw_error(ErrorCode::invalid_argument, "{}: the rows of the tensor have no elements", what);
}

OutputAllocator make_late_output(PendingTensors& pending, const torch::Tensor& like) {
  auto late = std::make_shared<torch::Tensor>();
  pending.late_outputs.push_back(late);
  return [late, sizes = shape_of(like),
          type = like.scalar_type()](std::span<const std::size_t> counts) mutable {
    const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    int64_t row = 1;
    for (std::size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
    sizes[0] = static_cast<int64_t>(total) / row;
    *late = torch::empty(sizes, type);
    return late->data_ptr();
  };
}

void start_allgather(PendingTensors& pending, const torch::Tensor& tensor, const std::string& name,
                     ProcessSetId set) {
  check_rows(tensor, "allgather");
  torch::Tensor input = on_host(tensor);
  pending.inputs.push_back(input);
  pending.handles.push_back(pending.engine->allgather_async(name, input.data_ptr(), shape_of(input),
                                                            data_type(input.scalar_type()),
                                                            make_late_output(pending, input), set));
}

}  // namespace train

bool poll(const TensorHandle& handle) {
  if (!handle.valid()) return false;
  const auto& pending = *handle.pending();
  if (pending.done) return true;
  return std::all_of(pending.handles.begin(), pending.handles.end(),
                     [&](const Handle& each) { return pending.engine->poll(each); });
}

std::vector<torch::Tensor> synchronize_group(const TensorHandle& handle) {
  if (!handle.valid())
    throw_error(ErrorCode::invalid_argument,
                "synchronize: the handle is empty: it was not returned by an operation");
  handle.pending()->wait();
  return handle.pending()->outputs;
}

torch::Tensor synchronize(const TensorHandle& handle) {
  std::vector<torch::Tensor> results = synchronize_group(handle);
  if (results.size() != 1)
    throw_error(ErrorCode::invalid_argument,
                "synchronize: the operation has {} results; use synchronize_group", results.size());
  return results.front();
}

std::vector<int64_t> received_splits(const TensorHandle& handle) {
  if (!handle.valid())
    throw_error(ErrorCode::invalid_argument,
                "received_splits: the handle is empty: it was not returned by an operation");
  handle.pending()->wait();
  return handle.pending()->splits;
}

}  // namespace kolo

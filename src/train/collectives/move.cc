// allgather, broadcast and alltoall of tensors, and sparse allreduce, which is made of allgathers.
#include <torch/torch.h>

#include "base/errors.h"
#include "train/collectives/autograd.h"
#include "train/collectives/pending.h"
#include "train/dtype.h"

namespace kolo {
namespace {

using train::PendingTensors;
using Tensors = std::vector<torch::Tensor>;

std::shared_ptr<PendingTensors> make_pending(const CollectiveOptions& options) {
  auto pending = std::make_shared<PendingTensors>();
  pending->engine = &train::engine_of(options);
  return pending;
}

/// Results whose size was not known before go back to the device that the inputs came from.
void return_to(PendingTensors& pending, torch::Device device) {
  if (device.is_cpu()) return;
  pending.finish = [device](PendingTensors& done) {
    for (torch::Tensor& output : done.outputs) output = output.to(device);
  };
}

TensorHandle start_allgather(const Tensors& tensors, const CollectiveOptions& options) {
  auto pending = make_pending(options);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    train::start_allgather(
        *pending, tensors[i],
        tensors.size() == 1 ? options.name : train::member_name(options.name, i, tensors.size()),
        options.process_set);
  return_to(*pending, tensors.front().device());
  return TensorHandle(pending);
}

TensorHandle start_broadcast(const torch::Tensor& tensor, int root,
                             const CollectiveOptions& options, bool in_place) {
  auto pending = make_pending(options);
  torch::Tensor data = train::on_host(tensor);
  if (!in_place && data.data_ptr() == tensor.data_ptr()) data = data.clone();
  pending->outputs.push_back(data);
  if (in_place)
    pending->targets.push_back(tensor);
  else if (!tensor.is_cpu())
    pending->targets.push_back(torch::empty_like(tensor));
  pending->handles.push_back(pending->engine->broadcast_async(
      options.name, data.data_ptr(), train::shape_of(data), train::data_type(data.scalar_type()),
      root, options.process_set));
  return TensorHandle(pending);
}

}  // namespace

TensorHandle allgather_async(const torch::Tensor& tensor, CollectiveOptions options) {
  return start_allgather({tensor}, options);
}
torch::Tensor allgather(const torch::Tensor& tensor, CollectiveOptions options) {
  if (train::needs_gradient(tensor)) return train::differentiable_allgather(tensor, options);
  return synchronize(allgather_async(tensor, std::move(options)));
}
TensorHandle grouped_allgather_async(const Tensors& tensors, CollectiveOptions options) {
  if (tensors.empty())
    throw_error(ErrorCode::invalid_argument, "grouped_allgather: the list of tensors is empty");
  return start_allgather(tensors, options);
}
Tensors grouped_allgather(const Tensors& tensors, CollectiveOptions options) {
  return synchronize_group(grouped_allgather_async(tensors, std::move(options)));
}

TensorHandle broadcast_async(const torch::Tensor& tensor, int root_rank,
                             CollectiveOptions options) {
  return start_broadcast(tensor, root_rank, options, false);
}
TensorHandle broadcast_async_(torch::Tensor tensor, int root_rank, CollectiveOptions options) {
  return start_broadcast(tensor, root_rank, options, true);
}
void broadcast_(torch::Tensor tensor, int root_rank, CollectiveOptions options) {
  synchronize(broadcast_async_(std::move(tensor), root_rank, std::move(options)));
}
torch::Tensor broadcast(const torch::Tensor& tensor, int root_rank, CollectiveOptions options) {
  if (train::needs_gradient(tensor))
    return train::differentiable_broadcast(tensor, root_rank, options);
  return synchronize(broadcast_async(tensor, root_rank, std::move(options)));
}

TensorHandle alltoall_async(const torch::Tensor& tensor, const std::vector<int64_t>& splits,
                            CollectiveOptions options) {
  train::check_rows(tensor, "alltoall");
  auto pending = make_pending(options);
  torch::Tensor input = train::on_host(tensor);
  pending->inputs.push_back(input);
  std::vector<std::size_t> rows;
  for (int64_t split : splits) {
    if (split < 0)
      throw_error(ErrorCode::invalid_argument,
                  "alltoall: a split has {} rows, but cannot be negative", split);
    rows.push_back(static_cast<std::size_t>(split));
  }
  pending->handles.push_back(pending->engine->alltoall_async(
      options.name, input.data_ptr(), train::shape_of(input), train::data_type(input.scalar_type()),
      std::move(rows), train::make_late_output(*pending, input), options.process_set));
  return_to(*pending, tensor.device());
  return TensorHandle(pending);
}
torch::Tensor alltoall(const torch::Tensor& tensor, const std::vector<int64_t>& splits,
                       CollectiveOptions options) {
  if (train::needs_gradient(tensor)) return train::differentiable_alltoall(tensor, splits, options);
  return synchronize(alltoall_async(tensor, splits, std::move(options)));
}

TensorHandle sparse_allreduce_async(const torch::Tensor& tensor, CollectiveOptions options) {
  if (!tensor.is_sparse())
    throw_error(ErrorCode::invalid_argument,
                "sparse_allreduce: the tensor is dense; use allreduce");
  if (options.op != ReduceOp::sum && options.op != ReduceOp::average)
    throw_error(ErrorCode::invalid_argument,
                "sparse_allreduce: {} is not supported; use sum or average", to_string(options.op));
  auto pending = make_pending(options);
  const torch::Tensor entries = tensor.detach().coalesce();
  const std::string name = options.name;
  // One row for each entry, so that entries of all members follow each other.
  train::start_allgather(*pending, entries.indices().transpose(0, 1),
                         name.empty() ? name : name + ".indices", options.process_set);
  train::start_allgather(*pending, entries.values(), name.empty() ? name : name + ".values",
                         options.process_set);
  double factor = options.prescale_factor * options.postscale_factor;
  if (options.op == ReduceOp::average)
    factor /= static_cast<double>(pending->engine->size(options.process_set));
  pending->finish = [factor, sizes = tensor.sizes().vec(),
                     device = tensor.device()](PendingTensors& done) {
    torch::Tensor indices = done.outputs[0].transpose(0, 1), values = done.outputs[1];
    if (factor != 1.0) values = values * factor;
    done.outputs = {torch::sparse_coo_tensor(indices, values, sizes).coalesce().to(device)};
  };
  return TensorHandle(pending);
}
torch::Tensor sparse_allreduce(const torch::Tensor& tensor, CollectiveOptions options) {
  return synchronize(sparse_allreduce_async(tensor, std::move(options)));
}

}  // namespace kolo

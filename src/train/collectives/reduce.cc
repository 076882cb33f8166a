// allreduce and reducescatter of tensors.
#include <torch/torch.h>

#include "base/errors.h"
#include "train/collectives/autograd.h"
#include "train/collectives/pending.h"

namespace kolo {
namespace {

using train::PendingTensors;
using Tensors = std::vector<torch::Tensor>;

/// In place: the results go where the inputs were.
TensorHandle start_allreduce(const Tensors& tensors, const CollectiveOptions& options,
                             bool in_place) {
  auto pending = std::make_shared<PendingTensors>();
  pending->engine = &train::engine_of(options);
  std::vector<TensorArg> arguments;
  for (const torch::Tensor& tensor : tensors) {
    torch::Tensor input = train::on_host(tensor);
    const bool is_copy = input.data_ptr() != tensor.data_ptr();
    torch::Tensor output = in_place || is_copy ? input : torch::empty_like(input);
    arguments.push_back(train::argument(input, output));
    pending->inputs.push_back(input);
    pending->outputs.push_back(output);
    if (in_place)
      pending->targets.push_back(tensor);
    else if (!tensor.is_cpu())
      pending->targets.push_back(torch::empty_like(tensor));
  }
  const ReduceOptions reduce = train::reduce_options(options);
  pending->handles.push_back(
      arguments.size() == 1
          ? pending->engine->allreduce_async(options.name, std::move(arguments.front()), reduce)
          : pending->engine->grouped_allreduce_async(options.name, std::move(arguments), reduce));
  return TensorHandle(pending);
}

TensorHandle start_reducescatter(const Tensors& tensors, const CollectiveOptions& options) {
  auto pending = std::make_shared<PendingTensors>();
  pending->engine = &train::engine_of(options);
  const auto members = static_cast<int64_t>(pending->engine->size(options.process_set));
  const auto mine = static_cast<int64_t>(pending->engine->rank(options.process_set));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    train::check_rows(tensors[i], "reducescatter");
    torch::Tensor input = train::on_host(tensors[i]);
    std::vector<int64_t> sizes = train::shape_of(input);
    sizes[0] = sizes[0] / members + (mine < sizes[0] % members ? 1 : 0);
    torch::Tensor output = torch::empty(sizes, input.options());
    pending->inputs.push_back(input);
    pending->outputs.push_back(output);
    if (!tensors[i].is_cpu()) pending->targets.push_back(torch::empty(sizes, tensors[i].options()));
    pending->handles.push_back(pending->engine->reducescatter_async(
        train::member_name(options.name, i, tensors.size()), train::argument(input, output),
        train::reduce_options(options)));
  }
  return TensorHandle(pending);
}

void check_group(const Tensors& tensors, const char* what) {
  if (tensors.empty())
    throw_error(ErrorCode::invalid_argument, "{}: the list of tensors is empty", what);
}

}  // namespace

TensorHandle allreduce_async(const torch::Tensor& tensor, CollectiveOptions options) {
  return start_allreduce({tensor}, options, false);
}
TensorHandle allreduce_async_(torch::Tensor tensor, CollectiveOptions options) {
  return start_allreduce({tensor}, options, true);
}
void allreduce_(torch::Tensor tensor, CollectiveOptions options) {
  synchronize(allreduce_async_(std::move(tensor), std::move(options)));
}
torch::Tensor allreduce(const torch::Tensor& tensor, CollectiveOptions options) {
  if (train::needs_gradient(tensor)) return train::differentiable_allreduce(tensor, options);
  return synchronize(allreduce_async(tensor, std::move(options)));
}

TensorHandle grouped_allreduce_async(const Tensors& tensors, CollectiveOptions options) {
  check_group(tensors, "grouped_allreduce");
  return start_allreduce(tensors, options, false);
}
TensorHandle grouped_allreduce_async_(const Tensors& tensors, CollectiveOptions options) {
  check_group(tensors, "grouped_allreduce");
  return start_allreduce(tensors, options, true);
}
void grouped_allreduce_(const Tensors& tensors, CollectiveOptions options) {
  synchronize_group(grouped_allreduce_async_(tensors, std::move(options)));
}
Tensors grouped_allreduce(const Tensors& tensors, CollectiveOptions options) {
  for (const torch::Tensor& tensor : tensors)
    if (train::needs_gradient(tensor))
      return train::differentiable_grouped_allreduce(tensors, options);
  return synchronize_group(grouped_allreduce_async(tensors, std::move(options)));
}

TensorHandle reducescatter_async(const torch::Tensor& tensor, CollectiveOptions options) {
  return start_reducescatter({tensor}, options);
}
torch::Tensor reducescatter(const torch::Tensor& tensor, CollectiveOptions options) {
  if (train::needs_gradient(tensor)) return train::differentiable_reducescatter(tensor, options);
  return synchronize(reducescatter_async(tensor, std::move(options)));
}
TensorHandle grouped_reducescatter_async(const Tensors& tensors, CollectiveOptions options) {
  check_group(tensors, "grouped_reducescatter");
  return start_reducescatter(tensors, options);
}
Tensors grouped_reducescatter(const Tensors& tensors, CollectiveOptions options) {
  return synchronize_group(grouped_reducescatter_async(tensors, std::move(options)));
}

}  // namespace kolo

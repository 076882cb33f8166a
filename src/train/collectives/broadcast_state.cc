#include <torch/torch.h>

#include "base/errors.h"
#include "kolo/torch/state.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

using Named = std::vector<std::pair<std::string, torch::Tensor>>;

/// What travels when root's state cannot: the reason, for everybody.
constexpr char kFailed = '!', kState = 'S';

}  // namespace

void broadcast_parameters(const Named& tensors, int root_rank, CollectiveOptions options) {
  const std::string prefix = options.name.empty() ? "broadcast_parameters." : options.name + ".";
  torch::NoGradGuard no_grad;
  std::vector<TensorHandle> handles;
  handles.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    options.name = prefix + name;
    handles.push_back(broadcast_async_(tensor, root_rank, options));
  }
  for (const TensorHandle& handle : handles) synchronize(handle);
}

void broadcast_parameters(const std::vector<torch::Tensor>& tensors, int root_rank,
                          CollectiveOptions options) {
  Named named;
  for (const torch::Tensor& tensor : tensors)
    named.emplace_back(std::to_string(named.size()), tensor);
  broadcast_parameters(named, root_rank, std::move(options));
}

void broadcast_parameters(const torch::nn::Module& module, int root_rank,
                          CollectiveOptions options) {
  Named named;
  for (const auto& item : module.named_parameters()) named.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) named.emplace_back(item.key(), item.value());
  broadcast_parameters(named, root_rank, std::move(options));
}

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root_rank,
                               CollectiveOptions options) {
  if (options.name.empty()) options.name = "broadcast_optimizer_state";
  const bool is_root = (options.engine != nullptr ? *options.engine : engine()).rank() == root_rank;
  std::string bytes;
  if (is_root) {
    try {
      train::check_copyable(optimizer);
      bytes = kState + train::optimizer_bytes(optimizer);
    } catch (const Error& error) {
      bytes = kFailed + error.message();
    }
  }
  bytes = broadcast_object(bytes, root_rank, options);
  if (bytes.starts_with(kFailed)) throw Error(ErrorCode::unsupported, bytes.substr(1));
  if (!is_root) train::load_optimizer_bytes(optimizer, bytes.substr(1));
}

}  // namespace kolo

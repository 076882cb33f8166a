// Collectives as differentiable functions of autograd.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "kolo/torch/collectives.h"

namespace kolo::train {

[[nodiscard]] inline bool needs_gradient(const torch::Tensor& tensor) {
  return torch::GradMode::is_enabled() && tensor.requires_grad();
}

torch::Tensor differentiable_allreduce(const torch::Tensor& tensor,
                                       const CollectiveOptions& options);
std::vector<torch::Tensor> differentiable_grouped_allreduce(
    const std::vector<torch::Tensor>& tensors, const CollectiveOptions& options);
torch::Tensor differentiable_allgather(const torch::Tensor& tensor,
                                       const CollectiveOptions& options);
torch::Tensor differentiable_broadcast(const torch::Tensor& tensor, int root_rank,
                                       const CollectiveOptions& options);
torch::Tensor differentiable_alltoall(const torch::Tensor& tensor,
                                      const std::vector<int64_t>& splits,
                                      const CollectiveOptions& options);
torch::Tensor differentiable_reducescatter(const torch::Tensor& tensor,
                                           const CollectiveOptions& options);

}  // namespace kolo::train

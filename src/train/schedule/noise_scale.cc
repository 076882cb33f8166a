#include "kolo/torch/noise_scale.h"

#include <torch/torch.h>

#include "kolo/torch/collectives.h"
#include "kolo/torch/distributed_optimizer.h"

namespace kolo {

void update_noise_scale(NoiseScaleEstimate& estimate, const DistributedOptimizer& optimizer,
                        std::size_t batch_per_rank) {
  update_noise_scale(estimate, optimizer, batch_per_rank, {});
}

void update_noise_scale(NoiseScaleEstimate& estimate, const DistributedOptimizer& optimizer,
                        std::size_t batch_per_rank, const CollectiveOptions& how) {
  Engine& ranks = how.engine != nullptr ? *how.engine : engine();
  const int members = ranks.size(how.process_set);
  if (members < 2) return;
  const DistributedOptimizer::Norms norms = optimizer.norms();
  torch::Tensor small = torch::tensor({norms.local_squared}, torch::kFloat64);
  CollectiveOptions average = how;
  average.op = ReduceOp::average;
  allreduce_(small, average);
  const auto batch = static_cast<double>(batch_per_rank);
  estimate.add(batch, batch * members, small.item<double>(), norms.reduced_squared);
}

}  // namespace kolo

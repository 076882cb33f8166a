// Batch normalisation over the samples of all ranks.
#pragma once

#include <torch/torch.h>

#include "kolo/torch/collectives.h"

namespace kolo {

struct SyncBatchNormOptions {
  using EnginePointer = Engine*;
  SyncBatchNormOptions(int64_t features) : num_features_(features) {}  // NOLINT: as libtorch's
  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  /// Weight of the newest batch in the running mean; nullopt: the mean of all batches.
  TORCH_ARG(torch::optional<double>, momentum) = 0.1;
  TORCH_ARG(bool, affine) = true;
  TORCH_ARG(bool, track_running_stats) = true;
  TORCH_ARG(ProcessSetId, process_set) = kGlobalProcessSet;
  TORCH_ARG(EnginePointer, engine) = nullptr;  ///< null: that of the default Context
};

/// In place of BatchNorm1d, 2d and 3d: inputs are samples x features x anything, and ranks may have
/// different numbers of samples, also none. In training mean and variance are those of the samples
/// of all members of the process set, and so are gradients; in evaluation, and with one member, it
/// is batch normalisation as usual. Ranks of other sets, and before init(), are alone.
///
/// Cost: one exchange of 2·features + 1 numbers forward, one of 2·features backward. Parameter
/// names are those of libtorch's BatchNorm, so that checkpoints fit.
class SyncBatchNormImpl : public torch::nn::Module {
 public:
  explicit SyncBatchNormImpl(const SyncBatchNormOptions& options);

  torch::Tensor forward(const torch::Tensor& input);
  void reset_parameters();

  SyncBatchNormOptions options;
  torch::Tensor weight, bias;
  torch::Tensor running_mean, running_var, num_batches_tracked;
};
TORCH_MODULE(SyncBatchNorm);

}  // namespace kolo

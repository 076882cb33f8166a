// Collective operations on tensors, with Horovod's names and meanings.
//
//   torch::Tensor mean = kolo::allreduce(loss);
//   auto handle = kolo::allreduce_async(gradient, {.name = "w1"});   …   kolo::synchronize(handle);
//
// Forms: `name` gives a new tensor and can be differentiated; `name_` works in place;
// `name_async` starts and returns a handle. Every member of the process set calls the same
// operations under the same names, in any order; without names, in the same order.
//
// Tensors on a CUDA device are staged through host memory (docs/training.md). Tensors need not be
// contiguous. Errors are those of the engine (kolo/engine.h); unsupported for element types that
// ranks cannot exchange.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kolo/engine.h"

namespace kolo {

struct CollectiveOptions {
  std::string name{};               ///< "": a running number
  ReduceOp op = ReduceOp::average;  ///< of reductions
  double prescale_factor = 1.0;     ///< result = postscale · reduce(prescale · tensor)
  double postscale_factor = 1.0;
  ProcessSetId process_set = kGlobalProcessSet;
  Engine* engine = nullptr;  ///< null: that of the default Context
};

namespace train {
struct PendingTensors;
}

/// One operation under way, or a group of them. It keeps its tensors alive.
class TensorHandle {
 public:
  TensorHandle() = default;
  explicit TensorHandle(std::shared_ptr<train::PendingTensors> pending)
      : pending_(std::move(pending)) {}
  [[nodiscard]] bool valid() const noexcept { return pending_ != nullptr; }
  [[nodiscard]] const std::shared_ptr<train::PendingTensors>& pending() const noexcept {
    return pending_;
  }

 private:
  std::shared_ptr<train::PendingTensors> pending_;
};

/// Whether synchronize() would return at once. False for a handle that was never given out.
[[nodiscard]] bool poll(const TensorHandle& handle);
/// Waits, and returns the result: the new tensor, or the one that was changed in place. May be
/// called again.
torch::Tensor synchronize(const TensorHandle& handle);
/// Of grouped operations: all results, in the order of the tensors given.
std::vector<torch::Tensor> synchronize_group(const TensorHandle& handle);
/// Of alltoall: how many rows came from each member.
std::vector<int64_t> received_splits(const TensorHandle& handle);

// --- allreduce -----------------------------------------------------------------------------------

/// Gradient: allreduce of the gradient with the same reduction and factors (sum and average only).
[[nodiscard]] torch::Tensor allreduce(const torch::Tensor& tensor, CollectiveOptions options = {});
void allreduce_(torch::Tensor tensor, CollectiveOptions options = {});
[[nodiscard]] TensorHandle allreduce_async(const torch::Tensor& tensor,
                                           CollectiveOptions options = {});
TensorHandle allreduce_async_(torch::Tensor tensor, CollectiveOptions options = {});

/// All tensors are negotiated together and complete together.
[[nodiscard]] std::vector<torch::Tensor> grouped_allreduce(
    const std::vector<torch::Tensor>& tensors, CollectiveOptions options = {});
void grouped_allreduce_(const std::vector<torch::Tensor>& tensors, CollectiveOptions options = {});
[[nodiscard]] TensorHandle grouped_allreduce_async(const std::vector<torch::Tensor>& tensors,
                                                   CollectiveOptions options = {});
TensorHandle grouped_allreduce_async_(const std::vector<torch::Tensor>& tensors,
                                      CollectiveOptions options = {});

/// COO tensors of one shape: sum or average, as the union of the members' entries, coalesced. All
/// members bring their entries to all (allgather); worth it while few rows are touched.
[[nodiscard]] torch::Tensor sparse_allreduce(const torch::Tensor& tensor,
                                             CollectiveOptions options = {});
[[nodiscard]] TensorHandle sparse_allreduce_async(const torch::Tensor& tensor,
                                                  CollectiveOptions options = {});

// --- moving --------------------------------------------------------------------------------------

/// Concatenated along the first dimension, which may differ between members. Gradient: the average
/// over the members, and of that this member's rows.
[[nodiscard]] torch::Tensor allgather(const torch::Tensor& tensor, CollectiveOptions options = {});
[[nodiscard]] TensorHandle allgather_async(const torch::Tensor& tensor,
                                           CollectiveOptions options = {});
[[nodiscard]] std::vector<torch::Tensor> grouped_allgather(
    const std::vector<torch::Tensor>& tensors, CollectiveOptions options = {});
[[nodiscard]] TensorHandle grouped_allgather_async(const std::vector<torch::Tensor>& tensors,
                                                   CollectiveOptions options = {});

/// `root_rank` is a rank of the whole job, also in process sets. Gradient: the average at the root,
/// zero elsewhere.
[[nodiscard]] torch::Tensor broadcast(const torch::Tensor& tensor, int root_rank,
                                      CollectiveOptions options = {});
void broadcast_(torch::Tensor tensor, int root_rank, CollectiveOptions options = {});
[[nodiscard]] TensorHandle broadcast_async(const torch::Tensor& tensor, int root_rank,
                                           CollectiveOptions options = {});
TensorHandle broadcast_async_(torch::Tensor tensor, int root_rank, CollectiveOptions options = {});

/// splits[m] rows go to member m; empty: equal parts. Gradient: alltoall back.
[[nodiscard]] torch::Tensor alltoall(const torch::Tensor& tensor,
                                     const std::vector<int64_t>& splits = {},
                                     CollectiveOptions options = {});
[[nodiscard]] TensorHandle alltoall_async(const torch::Tensor& tensor,
                                          const std::vector<int64_t>& splits = {},
                                          CollectiveOptions options = {});

/// Reduced, and of that this member's rows; the first (rows % size) members get one more. Sum and
/// average only. Gradient: allgather, times the size for sum, times the factors.
[[nodiscard]] torch::Tensor reducescatter(const torch::Tensor& tensor,
                                          CollectiveOptions options = {});
[[nodiscard]] TensorHandle reducescatter_async(const torch::Tensor& tensor,
                                               CollectiveOptions options = {});
[[nodiscard]] std::vector<torch::Tensor> grouped_reducescatter(
    const std::vector<torch::Tensor>& tensors, CollectiveOptions options = {});
[[nodiscard]] TensorHandle grouped_reducescatter_async(const std::vector<torch::Tensor>& tensors,
                                                       CollectiveOptions options = {});

}  // namespace kolo

// Operations on tensors that are in flight, and the tensors that they keep alive until they are
// done.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kolo/torch/collectives.h"

namespace kolo::train {

struct PendingTensors {
  Engine* engine = nullptr;
  std::vector<Handle> handles;
  std::vector<torch::Tensor> inputs;   // kept alive; where they are staged, the copies
  std::vector<torch::Tensor> outputs;  // results, on the host
  /// Results whose size is known late: a thread of the engine makes them.
  std::vector<std::shared_ptr<torch::Tensor>> late_outputs;
  std::vector<torch::Tensor> targets;           // where results go, if not the outputs themselves
  std::vector<int64_t> splits;                  // alltoall: rows from each member
  std::function<void(PendingTensors&)> finish;  // once, after the last handle
  bool done = false;

  PendingTensors() = default;
  /// The engine still reads and writes the tensors: waits until it does not.
  ~PendingTensors();
  PendingTensors(const PendingTensors&) = delete;
  PendingTensors& operator=(const PendingTensors&) = delete;

  void wait();
};

[[nodiscard]] Engine& engine_of(const CollectiveOptions& options);

/// `tensor` as the engine can read it: contiguous, in host memory; itself where it is so already.
[[nodiscard]] torch::Tensor on_host(const torch::Tensor& tensor);

[[nodiscard]] Shape shape_of(const torch::Tensor& tensor);
[[nodiscard]] TensorArg argument(const torch::Tensor& input, const torch::Tensor& output);
[[nodiscard]] ReduceOptions reduce_options(const CollectiveOptions& options);

/// Name of tensor i of n in a group: "<base>_<i>of<n>"; "" stays "".
[[nodiscard]] std::string member_name(const std::string& base, std::size_t i, std::size_t n);

/// For operations that split or join rows. Throws invalid_argument for a scalar, and for rows
/// without elements, whose number could not be told from the result.
void check_rows(const torch::Tensor& tensor, const char* what);

/// An allocator that makes a tensor like `like` with as many rows as come, and where it will be.
[[nodiscard]] OutputAllocator make_late_output(PendingTensors& pending, const torch::Tensor& like);

/// Starts one more allgather of `pending`.
void start_allgather(PendingTensors& pending, const torch::Tensor& tensor, const std::string& name,
                     ProcessSetId set);

}  // namespace kolo::train

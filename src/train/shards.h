// The optimizer's state, shared out between the ranks (ZeRO stage 1).
//
// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020.
// The parameters of a bucket lie one after the other in one flat tensor, as their gradients do.
// Each rank owns a part of it: it gets the reduced gradient of that part (reducescatter), steps its
// optimizer on that part alone, and shows the result to the others (allgather).
// Cost: the bytes of one allreduce, in two halves; optimizer memory 1/n.
//
// Parts are equal slices for optimizers that treat each element by itself. For others (LARS, LAMB,
// anything unknown) they are whole parameters, shared out by size, and gradients are reduced whole.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "kolo/communicator.h"
#include "train/gradient_exchange.h"
#include "train/gradient_reducer.h"

namespace kolo::train {

/// Whether an optimizer's update of an element depends on that element alone.
bool is_elementwise(const torch::optim::Optimizer& optimizer);

class Shards {
 public:
  /// Throws failed_precondition if the optimizer has state already.
  explicit Shards(torch::optim::Optimizer& optimizer);

  /// Moves the parameters into flat tensors and gives the optimizer this rank's part of them.
  void take_over(Communicator& communicator, GradientExchange& gradients);

  /// After the optimizer's step: everybody's parts to everybody. Collective.
  void share(Communicator& communicator);

  /// Norm of the whole reduced gradient. Collective.
  double norm(Communicator& communicator);
  void scale_gradients(double factor);

  /// A reducer that leaves each rank the reduced gradient of its part.
  std::unique_ptr<GradientReducer> make_reducer(ReduceOp op, Scaling scaling);

 private:
  struct Shard {
    SharedBytes values;     // all parameters of the bucket
    SharedBytes gradients;  // this rank's part, when parts are slices
    torch::Tensor flat;
    DataType type = DataType::float32;
    std::vector<std::size_t> bounds;  // of the ranks' parts, in elements
    std::vector<torch::Tensor> own;   // what the optimizer has here
  };
  class Reducer;

  void take_slice(Communicator& communicator, Shard& shard, std::vector<torch::Tensor>& group);
  void take_whole(Communicator& communicator, Shard& shard, const BucketPlan::Bucket& planned,
                  GradientExchange& gradients, std::vector<torch::Tensor>& group);

  torch::optim::Optimizer& optimizer_;
  const bool elementwise_;
  std::vector<Shard> shards_;
};

}  // namespace kolo::train

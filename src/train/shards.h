// The optimizer's state, shared out between the ranks (ZeRO stage 1).
//
// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020.
// The parameters of a bucket lie one after the other in one flat tensor, as their gradients do.
// Each rank owns a part of it: it gets the reduced gradient of that part (reducescatter), steps its
// optimizer on that part alone, and shows the result to the others (allgather).
// Cost: the bytes of one allreduce, in two halves; optimizer memory 1/n.
//
// Parts are equal slices for optimizers that treat each element by itself; the optimizer has the
// *piece* of each parameter that lies in this rank's slice. For others (LARS, LAMB, anything
// unknown) parts are whole parameters, shared out by size, and gradients are reduced whole.
//
// A piece has a gradient if any rank had one of its parameter: so parameters that nobody used are
// left alone, as in one process. For checkpoints the pieces of all ranks are put together again.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "kolo/communicator.h"
#include "train/gradient_exchange.h"
#include "train/gradient_reducer.h"

namespace kolo::train {

/// Whether an optimizer's update of an element depends on that element alone.
bool is_elementwise(const torch::optim::Optimizer& optimizer);

/// The optimizer as one process would have it, as optimizer_bytes(), from what own_state() gave on
/// each rank. `groups` are its parameters when nothing is shared out.
std::string whole_state(const torch::optim::Optimizer& optimizer,
                        const std::vector<std::vector<torch::Tensor>>& groups,
                        const std::vector<std::string>& of_ranks);

class Shards {
 public:
  explicit Shards(torch::optim::Optimizer& optimizer);
  /// The optimizer has its parameters again, in memory of their own, and no state.
  ~Shards();
  Shards(const Shards&) = delete;
  Shards& operator=(const Shards&) = delete;

  /// Moves the parameters into flat tensors and gives the optimizer this rank's part of them, and
  /// of the state it has.
  void take_over(Communicator& communicator, GradientExchange& gradients);

  /// After gradients were reduced: the optimizer's pieces get theirs.
  void hand_out(const GradientExchange& gradients);

  /// After the optimizer's step: everybody's parts to everybody. Collective.
  void share(Communicator& communicator);

  /// Norm of the whole reduced gradient. Collective.
  double norm(Communicator& communicator);
  void scale_gradients(double factor);

  /// A reducer that leaves each rank the reduced gradient of its part.
  std::unique_ptr<GradientReducer> make_reducer(ReduceOp op, Scaling scaling);

  /// The optimizer as one process would have it, as optimizer_bytes(), on the first rank.
  /// Collective. For optimizers that are copyable.
  std::string gather_state(Communicator& communicator);
  /// The other way, on every rank.
  void load_state(const std::string& bytes);
  [[nodiscard]] bool has_taken_over() const noexcept { return !shards_.empty(); }
  /// This rank's part of the state.
  [[nodiscard]] std::string own_state() const;
  /// Of the optimizer, before take_over().
  [[nodiscard]] const std::vector<std::vector<torch::Tensor>>& groups() const { return groups_; }

 private:
  /// What the optimizer has here of one parameter.
  struct Piece {
    std::size_t parameter = 0;
    std::int64_t first = 0, count = 0;  // elements of the parameter, as they lie in memory
    torch::Tensor values;
    torch::Tensor gradient;  // when parts are slices
  };
  struct Shard {
    SharedBytes values;     // all parameters of the bucket
    SharedBytes gradients;  // this rank's part, when parts are slices
    torch::Tensor flat;
    DataType type = DataType::float32;
    int optimizer_group = 0;
    std::vector<std::size_t> bounds;  // of the ranks' parts, in elements
    std::vector<Piece> own;
  };
  class Reducer;

  void take_slice(Communicator& communicator, Shard& shard, const BucketPlan::Bucket& planned);
  void take_whole(Communicator& communicator, Shard& shard, const BucketPlan::Bucket& planned);
  /// The optimizer has whole parameters and their state: it gets its pieces instead.
  void share_out();

  torch::optim::Optimizer& optimizer_;
  const bool elementwise_;
  std::vector<torch::Tensor> parameters_;           // all; since take_over()
  std::vector<std::vector<torch::Tensor>> groups_;  // of the optimizer, before take_over()
  std::vector<Shard> shards_;
};

}  // namespace kolo::train

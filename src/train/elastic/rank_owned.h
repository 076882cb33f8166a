// What a DistributedOptimizer has on this rank alone: its shard of the optimizer's state, and what
// compression has left out. Elastic states keep it (optimizer_part.cc), although they outlive it.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace kolo::train {

class RankOwned {
 public:
  virtual ~RankOwned() = default;
  /// Whether the optimizer's state is shared out by now. The same on every rank.
  [[nodiscard]] virtual bool is_sharded() const = 0;
  /// This rank's part of it, for whole_state() (shards.h).
  [[nodiscard]] virtual std::string shard() const = 0;
  [[nodiscard]] virtual std::string residuals() const = 0;
  /// The parameters of the optimizer's groups as they are when nothing is shared out.
  [[nodiscard]] virtual std::vector<std::vector<torch::Tensor>> groups() const = 0;
};

/// Of the DistributedOptimizer that wraps `optimizer` now. Null if there is none, or if it has
/// nothing that other ranks do not have.
[[nodiscard]] const RankOwned* rank_owned_of(const torch::optim::Optimizer& optimizer);

/// While it lives, rank_owned_of() gives `owned`.
class OwnsAlone {
 public:
  OwnsAlone(const torch::optim::Optimizer& optimizer, const RankOwned& owned);
  ~OwnsAlone();
  OwnsAlone(const OwnsAlone&) = delete;
  OwnsAlone& operator=(const OwnsAlone&) = delete;

 private:
  const torch::optim::Optimizer& optimizer_;
};

/// The residuals of each rank of the group before, for the next DistributedOptimizer that wraps
/// `optimizer`.
void leave_residuals(const torch::optim::Optimizer& optimizer, std::vector<std::string> of_ranks);
[[nodiscard]] std::vector<std::string> take_residuals(const torch::optim::Optimizer& optimizer);

}  // namespace kolo::train

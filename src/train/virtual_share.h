// What virtual ranks mean to one rank: which it computes, and how their values are added.
//
// Each virtual rank's value is a *leaf* of a tree (comm/tree_order.h). A rank adds its own leaves
// as they come, in *places* of a stack, as far as they are whole nodes of the tree; what is left
// are its blocks, which tree_allreduce() adds to those of the other ranks in the same tree. So
// neither the number of ranks nor who computed what changes a bit.
#pragma once

#include <torch/torch.h>

#include <span>
#include <vector>

#include "comm/tree_order.h"
#include "kolo/communicator.h"
#include "kolo/virtual_ranks.h"

namespace kolo::train {

class VirtualShare {
 public:
  VirtualShare(VirtualRanks ranks, int rank);

  [[nodiscard]] const VirtualRanks& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<int>& mine() const noexcept { return mine_; }
  [[nodiscard]] std::size_t places() const noexcept {
    return static_cast<std::size_t>(fold_.places);
  }
  [[nodiscard]] const comm::TreeOrder& order() const noexcept { return order_; }

  /// Adds this rank's leaf number `leaf` (they come in order) to what is in the places already;
  /// an undefined one is zero.
  void fold(std::size_t leaf, std::span<torch::Tensor> places, const torch::Tensor& value) const;

 private:
  VirtualRanks ranks_;
  std::vector<int> mine_;
  comm::Fold fold_;
  std::vector<std::size_t> held_;  // by leaf: places in use before it comes
  comm::TreeOrder order_;
};

/// Checks that all ranks have what equal bits need: the same number of virtual ranks, seed and
/// threads. Collective. Throws on every rank.
void check_same_bits(Communicator& communicator, int virtual_ranks, std::uint64_t seed);

/// The sum over all virtual ranks of rows[i], which is that of share.mine()[i]. Collective.
[[nodiscard]] torch::Tensor sum_leaves(Communicator& communicator, const VirtualShare& share,
                                       const torch::Tensor& rows);

}  // namespace kolo::train

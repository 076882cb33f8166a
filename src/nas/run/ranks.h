// Who trains together.
#pragma once

#include <torch/torch.h>

namespace kolo::nas {

/// This process alone, or all ranks of the default Context. Cheap to copy.
class Ranks {
 public:
  static Ranks alone() { return {}; }
  /// Joins the job first if that has not been done (collective).
  static Ranks all();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  // Collective, and without effect where there is one rank.
  /// What rank 0 says.
  [[nodiscard]] bool first_says(bool mine) const;
  [[nodiscard]] double first_says(double mine) const;
  /// float64 and contiguous; summed in place. The same bits on every rank.
  void add_up(torch::Tensor& sums) const;
  void broadcast(const torch::nn::Module& module) const;

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace kolo::nas

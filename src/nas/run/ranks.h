// The ranks that train one network together.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kolo/engine.h"

namespace kolo::nas {

/// This process alone, or ranks of the default Context. Cheap to copy.
class Ranks {
 public:
  static Ranks alone() { return {}; }
  /// All ranks, or on each host the first `per_node`; the others watch. Joins the job if that has
  /// not been done. Collective over all ranks.
  static Ranks of_job(std::int64_t per_node = 0);

  /// Among those who train; -1 for one who watches.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool watches() const noexcept { return rank_ < 0; }
  [[nodiscard]] ProcessSetId process_set() const noexcept { return set_; }

  // Collective over those who train, and without effect where there is one.
  /// What rank 0 says.
  [[nodiscard]] bool first_says(bool mine) const;
  [[nodiscard]] double first_says(double mine) const;
  /// float64 and contiguous; summed in place. The same bits on every rank.
  void add_up(torch::Tensor& sums) const;
  void broadcast(const torch::nn::Module& module) const;

  /// Tells those who watch what came out, and ends the group. Returns what rank 0 said. Collective
  /// over all ranks; without effect where nobody watches.
  [[nodiscard]] std::string tell_watchers(const std::string& outcome) const;
  [[nodiscard]] bool has_watchers() const noexcept { return group_ != nullptr || watches(); }

 private:
  [[nodiscard]] Communicator& group() const;

  int rank_ = 0, size_ = 1;
  ProcessSetId set_ = kGlobalProcessSet;
  std::shared_ptr<Communicator> group_;  // null: the world, or none
};

}  // namespace kolo::nas

// Hands out the resources of a study (CPUs, GPUs, custom ones) to its trials.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/tune/options.h"

namespace kolo::tune {

/// The resources that a running trial holds.
struct Grant {
  int slot = 0;              ///< the lowest row that was free, for the timeline
  std::vector<int> devices;  ///< CUDA devices, as places among those that this process sees
  Resources held;
  int ranks = 0;  ///< of an elastic trial; `held` is what they have together
};

/// Throws invalid_argument, naming `whose` they are, when an amount is negative, no number, or more
/// than can be counted.
void check_amounts(const Resources& resources, std::string_view whose);

class ResourcePool {
 public:
  explicit ResourcePool(Resources total);

  /// Throws invalid_argument when there is less than `wanted` even while nothing runs.
  void require_possible(const Resources& wanted) const;
  /// Returns nothing while the resources are taken.
  std::optional<Grant> take(const Resources& wanted);
  void give_back(const Grant& grant);
  /// From now on there is this much; never less than before.
  void extend(const Resources& total);

  /// One more rank of an elastic trial. False while the resources are taken.
  bool grow(Grant& grant, const Resources& rank);
  void shrink(Grant& grant, const Resources& rank, int ranks);
  /// How many more such ranks fit now.
  [[nodiscard]] int free_for(const Resources& rank) const;

  /// How many trials of this kind fit at once.
  [[nodiscard]] int capacity(const Resources& wanted) const;
  [[nodiscard]] const Resources& total() const noexcept { return total_; }
  /// "2/4 CPUs, 0/1 GPUs"
  [[nodiscard]] std::string describe() const;

 private:
  Resources total_, used_;
  std::vector<double> devices_;  // what is free of each
  std::vector<bool> slots_;      // taken
};

/// What `count` of these take together.
Resources resources_for(int count, const Resources& each);

/// The processors and CUDA devices that this process may use.
Resources machine_resources();

}  // namespace kolo::tune

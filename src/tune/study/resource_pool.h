// Processors, devices and other things that trials need, and who has them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kolo/tune/options.h"

namespace kolo::tune {

/// What a running trial holds.
struct Grant {
  int slot = 0;              ///< the lowest row that was free, for the timeline
  std::vector<int> devices;  ///< of CUDA
  Resources held;
};

class ResourcePool {
 public:
  explicit ResourcePool(Resources total);

  /// Throws invalid_argument, naming what could never be had.
  void require_possible(const Resources& wanted) const;
  /// None: not now.
  std::optional<Grant> take(const Resources& wanted);
  void give_back(const Grant& grant);

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

/// What this machine has, for this process.
Resources machine_resources();

}  // namespace kolo::tune

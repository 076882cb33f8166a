// Numbers kept in order: the rank of a new one and the value at any rank, as numbers arrive.
//
// A list of sorted blocks. With B numbers per block, inserting one of n costs a search among n/B
// blocks and a move of at most B numbers: about 0.1 µs up to 10^5 numbers, where sorting at each
// arrival would take milliseconds. Nothing is ever removed.
#pragma once

#include <cstddef>
#include <vector>

namespace kolo::search {

class OrderedValues {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// `value` must not be NaN.
  void insert(double value);

  /// How many are strictly smaller.
  [[nodiscard]] std::size_t count_below(double value) const noexcept;

  /// The value with `rank` smaller or equal ones before it; rank < size().
  [[nodiscard]] double at(std::size_t rank) const noexcept;

  /// The q-quantile, 0 <= q <= 1, interpolated linearly between the two values around position
  /// q (n - 1), which is what numpy.percentile does. Not when empty.
  [[nodiscard]] double quantile(double q) const noexcept;

 private:
  [[nodiscard]] std::size_t block_for(double value) const noexcept;

  std::vector<std::vector<double>> blocks_;  // none is empty
  std::vector<double> greatest_;             // the last value of each block
  std::size_t size_ = 0;
};

}  // namespace kolo::search

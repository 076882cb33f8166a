// Where the blocks of members lie in a row of them.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace kolo::comm {

/// Start of each block, and the end of the last.
inline std::vector<std::size_t> places(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> result(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), result.begin() + 1);
  return result;
}

}  // namespace kolo::comm

// How the elements of an operation are divided: one slice for each member.
#pragma once

#include <algorithm>
#include <cstddef>

namespace kolo::comm {

struct Slice {
  std::size_t first, count;
};

/// The slice of `member`. Slices begin on cache lines, and none is longer than the next multiple of
/// a cache line above count / members.
inline Slice slice_of(std::size_t count, std::size_t element_bytes, int members, int member) {
  const std::size_t unit = std::max<std::size_t>(1, 64 / element_bytes);
  const std::size_t units = (count + unit - 1) / unit;
  const auto boundary = [&](int i) {
    return std::min(count,
                    units * static_cast<std::size_t>(i) / static_cast<std::size_t>(members) * unit);
  };
  return {boundary(member), boundary(member + 1) - boundary(member)};
}

}  // namespace kolo::comm

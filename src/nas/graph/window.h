// A window that moves over the places of a sample: what convolutions and pools have in common.
//
// Paddings are those of Keras. "valid": the window stays inside, floor((n - k) / s) + 1 places.
// "same": ceil(n / s) places, with (places - 1)·s + k - n zeros, the odd one at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kolo/nas/operations.h"

namespace kolo::nas {

struct Window {
  std::vector<std::int64_t> size, strides;
  std::vector<std::int64_t> places;         ///< of the output
  std::vector<std::int64_t> before, after;  ///< padding of each axis

  /// `shape` is that of a sample, channels first. Throws invalid_argument when the window does not
  /// fit inside.
  Window(const Shape& shape, std::vector<std::int64_t> size, std::vector<std::int64_t> strides,
         bool same);

  /// As much on both sides of every axis: libtorch's own padding will do.
  [[nodiscard]] bool symmetric() const { return before == after; }
  /// For torch::constant_pad_nd: the last axis first.
  [[nodiscard]] std::vector<std::int64_t> padding() const;
  [[nodiscard]] bool pads() const;
};

}  // namespace kolo::nas

// The IDX format of the MNIST family: an array of numbers with its type and dimensions in front.
//
//   byte 0, 1: zero    byte 2: type    byte 3: number of dimensions
//   then each dimension as a big-endian 32-bit number, then the elements, big-endian, last
//   dimension fastest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/types.h"

namespace kolo::train {

struct IdxArray {
  DataType type = DataType::uint8;
  std::vector<std::int64_t> shape;
  std::string elements;  ///< in this machine's byte order
};

/// Throws corruption, naming `origin`, for anything but one complete array.
IdxArray parse_idx(std::string_view bytes, std::string_view origin);

}  // namespace kolo::train

// How messages of the protocol are put into bytes: what its files share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/frames.h"

namespace kolo::exec {

/// Reads one message and insists that nothing is left.
template <class Read>
auto decode_whole(std::string_view payload, Read&& read) {
  ByteReader reader(payload);
  auto message = read(reader);
  reader.finish();
  return message;
}

inline std::chrono::milliseconds read_milliseconds(ByteReader& reader) {
  return std::chrono::milliseconds(reader.u32());
}
inline std::uint32_t count_of(std::chrono::milliseconds duration) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration.count(), 0, UINT32_MAX));
}

inline void write(ByteWriter& writer, const std::vector<int>& numbers) {
  writer.u32(static_cast<std::uint32_t>(numbers.size()));
  for (const int number : numbers) writer.i32(number);
}

inline std::vector<int> read_numbers(ByteReader& reader) {
  std::vector<int> numbers(reader.count(4));
  for (int& number : numbers) number = reader.i32();
  return numbers;
}

}  // namespace kolo::exec

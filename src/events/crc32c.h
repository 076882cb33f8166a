// CRC-32C (Castagnoli; RFC 3720, B.4), the checksum of TensorBoard's records.
#pragma once

#include <cstdint>
#include <string_view>

namespace kolo::events {

/// Eight bytes at a time from tables; about a gigabyte per second.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

/// As records hold it: turned and shifted, because a checksum over data that contains its own
/// checksum is weak.
[[nodiscard]] constexpr std::uint32_t masked(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace kolo::events

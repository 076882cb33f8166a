#include "events/crc32c.h"

#include <array>
#include <cstddef>

namespace kolo::events {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78U;  // bits reversed
constexpr std::size_t kSlices = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// tables[k][b]: what byte b does to the checksum when k further bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr Tables kTables = make_tables();

std::uint32_t byte_at(std::string_view bytes, std::size_t place) {
  return static_cast<unsigned char>(bytes[place]);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t crc = ~0U;
  std::size_t place = 0;
  for (; place + kSlices <= bytes.size(); place += kSlices) {
    for (std::size_t i = 0; i < 4; ++i) crc ^= byte_at(bytes, place + i) << (8 * i);
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 4; ++i) next ^= kTables[kSlices - 1 - i][(crc >> (8 * i)) & 0xff];
    for (std::size_t i = 4; i < kSlices; ++i)
      next ^= kTables[kSlices - 1 - i][byte_at(bytes, place + i)];
    crc = next;
  }
  for (; place < bytes.size(); ++place)
    crc = (crc >> 8) ^ kTables[0][(crc ^ byte_at(bytes, place)) & 0xff];
  return ~crc;
}

}  // namespace kolo::events

#include "train/data/idx.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/errors.h"

namespace kolo::train {
namespace {

DataType type_of_code(unsigned char code, std::string_view origin) {
  switch (code) {
    case 0x08: return DataType::uint8;
    case 0x09: return DataType::int8;
    case 0x0b: return DataType::int16;
    case 0x0c: return DataType::int32;
    case 0x0d: return DataType::float32;
    case 0x0e: return DataType::float64;
    default:
      throw_error(ErrorCode::corruption, "{}: not an IDX file: element type 0x{:02x} is unknown",
                  origin, code);
  }
}

std::uint32_t big_endian(std::string_view four) {
  std::uint32_t value = 0;
  for (char c : four) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, std::string_view origin) {
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    throw_error(ErrorCode::corruption, "{}: not an IDX file: it does not begin with two zero bytes",
                origin);
  IdxArray array;
  array.type = type_of_code(static_cast<unsigned char>(bytes[2]), origin);
  const std::size_t dimensions = static_cast<unsigned char>(bytes[3]);
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header)
    throw_error(ErrorCode::corruption, "{}: ends inside its header, after {} bytes", origin,
                bytes.size());
  const std::size_t width = size_of(array.type);
  std::size_t expected = width;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::size_t length = big_endian(bytes.substr(4 + 4 * d, 4));
    array.shape.push_back(static_cast<std::int64_t>(length));
    if (length != 0 && expected > std::numeric_limits<std::size_t>::max() / length)
      throw_error(ErrorCode::corruption, "{}: its dimensions are larger than any file", origin);
    expected *= length;
  }
  const std::string_view elements = bytes.substr(header);
  if (elements.size() != expected)
    throw_error(ErrorCode::corruption,
                "{}: {}: the header announces {} bytes of elements, {} follow", origin,
                elements.size() < expected ? "truncated" : "too long", expected, elements.size());
  array.elements = elements;
  if (std::endian::native == std::endian::little && width > 1)
    for (auto at = array.elements.begin(); at != array.elements.end(); at += width)
      std::reverse(at, at + static_cast<std::ptrdiff_t>(width));
  return array;
}

}  // namespace kolo::train

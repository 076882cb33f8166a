#include "base/frames.h"

#include "base/errors.h"

namespace kolo {

std::string encode_frame(std::uint8_t type, std::string_view payload) {
  ByteWriter frame;
  frame.u32(static_cast<std::uint32_t>(payload.size() + 1)).u8(type).raw(payload);
  return frame.bytes();
}

std::optional<Frame> FrameParser::next() {
  constexpr std::size_t kPrefix = 4;
  std::string_view waiting = std::string_view(buffer_).substr(start_);
  if (waiting.size() >= kPrefix) {
    const std::size_t length = ByteReader(waiting).u32();
    if (length == 0 || length > limit_)
      throw_error(ErrorCode::corruption, "a message of {} bytes came where 1 to {} are allowed",
                  length, limit_);
    if (waiting.size() >= kPrefix + length) {
      Frame frame{static_cast<std::uint8_t>(waiting[kPrefix]),
                  std::string(waiting.substr(kPrefix + 1, length - 1))};
      start_ += kPrefix + length;
      return frame;
    }
  }
  buffer_.erase(0, start_);
  start_ = 0;
  return std::nullopt;
}

std::string_view ByteReader::raw(std::size_t size) {
  if (size > bytes_.size())
    throw_error(ErrorCode::corruption, "a message ends {} bytes too early", size - bytes_.size());
  std::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

std::uint32_t ByteReader::count(std::size_t item_bytes) {
  const std::uint32_t items = u32();
  if (items > bytes_.size() / item_bytes)
    throw_error(ErrorCode::corruption, "a message announces {} items and ends too early", items);
  return items;
}

std::vector<std::string> ByteReader::strings() {
  std::vector<std::string> values(count(sizeof(std::uint32_t)));
  for (auto& value : values) value = string();
  return values;
}

void ByteReader::finish() const {
  if (!bytes_.empty())
    throw_error(ErrorCode::corruption, "a message has {} bytes too many", bytes_.size());
}

}  // namespace kolo

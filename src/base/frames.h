// Length-prefixed binary frames and the bytes inside them, for kolo's own protocols.
//
// A frame is: u32 length of what follows, u8 type, payload. Numbers are little-endian; strings are
// u32 length and bytes. Every reader has a limit: what is longer, or ends too early, is corruption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

struct Frame {
  std::uint8_t type = 0;
  std::string payload;
};

std::string encode_frame(std::uint8_t type, std::string_view payload);

/// Takes bytes as they arrive, gives frames as they become complete.
class FrameParser {
 public:
  /// `limit` bounds type + payload.
  explicit FrameParser(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// Throws corruption for a frame over the limit, as soon as its length is known.
  std::optional<Frame> next();
  /// Bytes that wait for the rest of their frame.
  [[nodiscard]] std::size_t pending() const noexcept { return buffer_.size() - start_; }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t start_ = 0;  // of what next() has not taken yet
};

class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return number(value); }
  ByteWriter& u16(std::uint16_t value) { return number(value); }
  ByteWriter& u32(std::uint32_t value) { return number(value); }
  ByteWriter& u64(std::uint64_t value) { return number(value); }
  ByteWriter& i32(std::int32_t value) { return number(static_cast<std::uint32_t>(value)); }
  ByteWriter& string(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size()));
    return raw(value);
  }
  ByteWriter& strings(const std::vector<std::string>& values) {
    u32(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values) string(value);
    return *this;
  }
  /// Bytes whose number the reader knows.
  ByteWriter& raw(std::string_view value) {
    bytes_.append(value);
    return *this;
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  template <class T>
  ByteWriter& number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
    return *this;
  }
  std::string bytes_;
};

/// Every read throws corruption if there are not enough bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int32_t i32() { return static_cast<std::int32_t>(number<std::uint32_t>()); }
  std::string string() { return std::string(raw(u32())); }
  std::vector<std::string> strings();
  std::string_view raw(std::size_t size);
  /// A number of items that follow, each of at least `item_bytes`: never more than can be there.
  std::uint32_t count(std::size_t item_bytes);

  /// Throws corruption if anything is left.
  void finish() const;

 private:
  template <class T>
  T number() {
    std::string_view digits = raw(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(digits[i])) << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view bytes_;
};

}  // namespace kolo

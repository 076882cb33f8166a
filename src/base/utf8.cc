#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/errors.h"

namespace kolo {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// The length of the well-formed character at the beginning, 0 if there is none.
/// Ranges of the second byte: The Unicode Standard, table 3-7.
std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || !continues(1)) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) {
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
    return continues(2) ? 3 : 0;
  }
  if (first > 0xF4 || (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return continues(2) && continues(3) ? 4 : 0;
}

/// How many bytes at the beginning are ASCII without zeros, at least; eight at a time.
std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t done = 0;
  for (std::uint64_t eight = 0; done + sizeof eight <= text.size(); done += sizeof eight) {
    std::memcpy(&eight, text.data() + done, sizeof eight);
    constexpr std::uint64_t kHigh = 0x8080808080808080U, kOnes = 0x0101010101010101U;
    if ((eight & kHigh) != 0 || ((eight - kOnes) & ~eight & kHigh) != 0) break;
  }
  return done;
}

/// The length of the control character at the beginning, 0 if there is none. Those above ASCII are
/// U+0080 to U+009F.
std::size_t control_length(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7F) return 1;
  if (first != 0xC2 || text.size() < 2) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second < 0xA0 ? 2 : 0;
}

std::string without_controls(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto control = control_length(text);
    const bool stays = control == 0 || kept.find(text[0]) != std::string_view::npos;
    out += stays ? text[0] : ' ';
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return out;
}

}  // namespace

bool is_plain_utf8(std::string_view text) noexcept {
  for (;;) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const auto length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

std::string plain_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = character_length(text);
    out += length > 0 ? text.substr(0, length) : kReplacement;
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

std::string printable(std::string_view text) { return without_controls(text, ""); }
std::string printable_lines(std::string_view text) { return without_controls(text, "\n\t"); }

void require_plain_utf8(std::string_view text, std::string_view what) {
  if (!is_plain_utf8(text))
    throw_error(
        ErrorCode::invalid_argument,
        "{} must be UTF-8 text without zero bytes, because it is kept in a database; this is "
        "not: {}",
        what, plain_utf8(text));
}

}  // namespace kolo

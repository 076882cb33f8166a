// Text from outside: what programs print, what trials send, what files hold. Databases, JSON and
// pages take UTF-8 only, and one byte that is none must not cost more than that byte.
#pragma once

#include <string>
#include <string_view>

namespace kolo {

/// Well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF) without zero bytes,
/// which databases and C strings cannot hold.
bool is_plain_utf8(std::string_view text) noexcept;

/// The text with U+FFFD in place of each byte that is not part of well-formed UTF-8 and of each
/// zero byte.
std::string plain_utf8(std::string_view text);

/// For terminals: a blank in place of each control character, because texts of programs could move
/// the cursor, change colours or give the terminal orders.
std::string printable(std::string_view text);
/// The same, but line feeds and tabs stay.
std::string printable_lines(std::string_view text);

/// For names, paths and command lines, which may not change on the way: throws invalid_argument
/// unless is_plain_utf8(). `what` begins the message, as in "the name of a study".
void require_plain_utf8(std::string_view text, std::string_view what);

}  // namespace kolo

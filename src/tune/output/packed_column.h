// A column of a table in as few characters as a page can read without a library.
//
// Of a hundred thousand trials, names of fields and decimal digits would take most of the room. A
// column is packed as one of
//   {"of": [values], "u1" | "u2": text}   few different values, and the place of each row's among
//                                         them as one or two bytes; no text if there is one value
//   {"f4" | "f8": text}                   numbers of so many bytes; NaN where a row has none. "f4"
//                                         has seven digits, and is taken where no integer needs
//                                         more
//   [values]                              anything else
// Texts are base64, and numbers are little-endian. rows.js of the page unpacks them.
#pragma once

#include <span>

#include "base/json.h"

namespace kolo::tune {

/// Null stands for a row without a value.
[[nodiscard]] Json packed_column(std::span<const Json> values);

}  // namespace kolo::tune

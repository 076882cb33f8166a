// Escapes text for XML, SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace kolo {

/// Text that may stand in the content of an element or in an attribute in quotes.
std::string markup_escaped(std::string_view text);

}  // namespace kolo

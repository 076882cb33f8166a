// Bytes as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kolo {

/// RFC 4648 with padding, as `atob` of browsers reads it.
[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

}  // namespace kolo

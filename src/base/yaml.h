// YAML files as JSON values.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/json.h"

namespace kolo {

/// One YAML document as JSON: maps become objects (keys must be plain and unique), untagged plain
/// scalars become null, booleans (true/false as in YAML 1.2), integers or numbers where they read
/// so, everything else strings. An empty document is null.
///
/// `origin` is named in errors: throws invalid_argument "ORIGIN:LINE: …".
Json parse_yaml(std::string_view text, std::string_view origin);

/// As above. Throws not_found or io when the file cannot be read.
Json load_yaml(const std::filesystem::path& file);

}  // namespace kolo

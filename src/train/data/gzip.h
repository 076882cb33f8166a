// Files that may be compressed by gzip.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kolo::train {

/// `bytes` unpacked if they begin as gzip's do, else as they are. `origin` is named in errors:
/// throws corruption when they end too early or are damaged.
std::string gunzip_if_needed(std::string bytes, std::string_view origin);

/// Throws as read_file and gunzip_if_needed.
std::string read_maybe_gzipped(const std::filesystem::path& path);

}  // namespace kolo::train

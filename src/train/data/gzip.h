// Files that may be compressed by gzip.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kolo::train {

/// Half of the machine's memory: a small file can unpack to a thousand times its size.
std::size_t most_unpacked();

/// `bytes` unpacked if they begin as gzip's do, else as they are. `origin` is named in errors:
/// throws corruption when they end too early, are damaged, or unpack to more than `most` bytes.
std::string gunzip_if_needed(std::string bytes, std::string_view origin,
                             std::size_t most = most_unpacked());

/// Throws as read_file and gunzip_if_needed.
std::string read_maybe_gzipped(const std::filesystem::path& path);

}  // namespace kolo::train

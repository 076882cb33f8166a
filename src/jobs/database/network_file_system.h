// SQLite's locks do not hold on file systems that other hosts share.
#pragma once

#include <filesystem>

namespace kolo::jobs {

/// The kind of network file system that holds `path`, "" if it is a local one.
std::string_view network_file_system_of(const std::filesystem::path& path);
/// Says so in the log, and what to do instead.
void warn_of_network_file_system(const std::filesystem::path& path);

}  // namespace kolo::jobs

// A copy of the log in a file.
#pragma once

#include <filesystem>
#include <string_view>

namespace kolo::log {

/// While it lives, lines from level info on also go to a file, whatever standard error shows.
class File {
 public:
  /// Makes the file, or appends to it. Throws io. One at a time.
  explicit File(const std::filesystem::path& path);
  ~File();
  /// A line that goes to the file alone.
  void add(std::string_view message) const;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

}  // namespace kolo::log

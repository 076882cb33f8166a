// Files that programs write to, followed from their last part on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kolo::dashboard {

class LogStream {
 public:
  struct File {
    std::string name;  ///< as the page calls it
    std::filesystem::path path;
  };
  explicit LogStream(std::vector<File> files);

  /// What has come since the last call, as server-sent events with {file, text} or, when a file was
  /// begun anew, {file, text, again: true}. "" = nothing. The first call gives the end of each
  /// file.
  [[nodiscard]] std::string news();

 private:
  struct Followed {
    File file;
    std::size_t place = 0;  // of the next byte
    bool is_begun = false;
  };
  std::vector<Followed> files_;
};

}  // namespace kolo::dashboard

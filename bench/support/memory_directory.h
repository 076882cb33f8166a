// A directory in memory, for measurements of kolo itself: what a new file costs on a disk depends
// on what was removed there in the last minutes.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace bench {

class MemoryDirectory {
 public:
  /// Below /dev/shm; below `otherwise`, after a word about it, where that is not possible.
  explicit MemoryDirectory(const std::filesystem::path& otherwise) {
    std::string name = "/dev/shm/kolo-bench.XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
    } else {
      std::printf("/dev/shm cannot be written: the disk is measured, too\n");
      path_ = otherwise / "memory";
    }
  }
  ~MemoryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryDirectory(const MemoryDirectory&) = delete;
  MemoryDirectory& operator=(const MemoryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bench

// Where tests keep files that many writes go to.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kolo::test {

/// For TempDir: in memory, where there is such a file system, so that nothing waits for a disk.
inline std::string memory_folder(std::string_view name) {
  constexpr const char* kMemory = "/dev/shm";
  return std::filesystem::is_directory(kMemory) ? kMemory + ("/" + std::string(name))
                                                : std::string(name);
}

}  // namespace kolo::test

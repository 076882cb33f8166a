// What a disk holds of a folder, and what a power failure may leave of it: the model behind
// support/simulated_disk.h, which says what is kept and what may be lost.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "kolo/random.h"

namespace kolo::test {

class DiskImage {
 public:
  /// What is below the folder is on disk.
  explicit DiskImage(const std::filesystem::path& folder);

  // What a program does. Paths elsewhere, and descriptors of other files, do not count.
  void opened(int fd, const std::filesystem::path& path, bool made, bool truncated, mode_t mode);
  void closed(int fd) { open_files_.erase(fd); }
  void written(int fd, std::size_t at, std::string bytes);
  void resized(int fd, std::size_t size);
  void flushed(int fd);
  void made_folder(const std::filesystem::path& path, mode_t mode);
  void removed(const std::filesystem::path& path);
  void renamed(const std::filesystem::path& from, const std::filesystem::path& to);

  void fail_after(std::int64_t changes) { fails_at_ = changes_ + changes; }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] std::int64_t changes() const { return changes_; }
  void restart(Random& random);
  bool lies = false;

 private:
  struct Node;
  struct Naming;

  static std::shared_ptr<Node> loaded(const std::filesystem::path& path);
  static void write(const Node& node, const std::filesystem::path& path, Random& random);
  static std::string content_after_failure(const Node& file, Random& random);
  [[nodiscard]] std::optional<std::vector<std::string>> names_of(
      const std::filesystem::path& path) const;
  [[nodiscard]] std::shared_ptr<Node> find(const std::filesystem::path& path) const;
  [[nodiscard]] std::shared_ptr<Node> file_of(int fd) const;
  bool happens();

  std::filesystem::path root_;
  std::shared_ptr<Node> top_;
  std::unordered_map<int, std::shared_ptr<Node>> open_files_;
  std::optional<std::int64_t> fails_at_;
  std::int64_t changes_ = 0;
  bool has_failed_ = false;
};

}  // namespace kolo::test

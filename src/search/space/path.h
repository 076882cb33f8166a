// Paths into configurations: keys and list indices joined by '/'.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kolo::search {

/// Gives the elements of a path one by one. The empty path has none.
class PathWalk {
 public:
  explicit PathWalk(std::string_view path) : rest_(path), done_(path.empty()) {}

  [[nodiscard]] bool done() const noexcept { return done_; }

  std::string_view next() {
    const std::size_t slash = rest_.find('/');
    const std::string_view key = rest_.substr(0, slash);
    done_ = slash == std::string_view::npos;
    rest_ = done_ ? std::string_view() : rest_.substr(slash + 1);
    return key;
  }

 private:
  std::string_view rest_;
  bool done_;
};

inline std::optional<std::size_t> list_index(std::string_view key) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return index;
}

inline std::string join_path(std::string_view parent, std::string_view key) {
  std::string path(parent);
  if (!path.empty()) path += '/';
  return path.append(key);
}

/// Whether `path` is `parent` or lies below it.
inline bool is_within(std::string_view path, std::string_view parent) {
  return path.starts_with(parent) &&
         (path.size() == parent.size() || parent.empty() || path[parent.size()] == '/');
}

}  // namespace kolo::search

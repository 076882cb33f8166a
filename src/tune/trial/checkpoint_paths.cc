#include "tune/trial/checkpoint_paths.h"

#include <algorithm>

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

fs::path without_trailing_slash(fs::path path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

/// As far as it exists, with symbolic links followed. Empty if that cannot be found out.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(path, error);
  return error ? fs::path() : without_trailing_slash(std::move(found));
}

/// `outer` is `inner` or above it; both resolved.
bool is_prefix(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

fs::path checkpoint_path(const fs::path& named, const fs::path& trial_dir) {
  return without_trailing_slash((trial_dir / named).lexically_normal());
}

bool lies_inside(const fs::path& path, const fs::path& directory) {
  const fs::path inner = resolved(path), outer = resolved(directory);
  return !inner.empty() && !outer.empty() && inner != outer && is_prefix(outer, inner);
}

bool share_files(const fs::path& left, const fs::path& right) {
  const fs::path one = resolved(left), other = resolved(right);
  // What cannot be looked at may be the same.
  return one.empty() || other.empty() || is_prefix(one, other) || is_prefix(other, one);
}

}  // namespace kolo::tune

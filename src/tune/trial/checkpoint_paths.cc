#include "tune/trial/checkpoint_paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/remove_tree.h"
#include "base/text_table.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

fs::path without_trailing_slash(fs::path path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

/// Links above the directory are the user's, and one in its own place is the trial's. Empty if it
/// is no directory.
fs::path resolved_trial_dir(const fs::path& directory) {
  std::error_code none;
  const auto type = fs::symlink_status(directory, none).type();
  if (type != fs::file_type::directory && type != fs::file_type::not_found) return {};
  const fs::path above = resolved(directory.parent_path());
  return above.empty() ? above : above / directory.filename();
}

/// `outer` is `inner` or above it; both resolved.
bool is_prefix(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// `inner` is below `outer`; both resolved, or empty.
bool is_below(const fs::path& inner, const fs::path& outer) {
  return !inner.empty() && !outer.empty() && inner != outer && is_prefix(outer, inner);
}

/// Where the path itself is, which may be a link. Empty if that cannot be found out.
fs::path place_of(const fs::path& path) {
  const fs::path above = resolved(path.parent_path());
  return above.empty() ? above : above / path.filename();
}

}  // namespace

fs::path checkpoint_path(const fs::path& named, const fs::path& trial_dir) {
  return without_trailing_slash((trial_dir / named).lexically_normal());
}

fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(path, error);
  return error ? fs::path() : without_trailing_slash(std::move(found));
}

std::string fault_of_checkpoint(const fs::path& path, const fs::path& trial_dir) {
  const fs::path found = resolved(path);
  constexpr std::size_t kLetters = 200;
  const auto name = fmt::format("its checkpoint {}", shortened(path.string(), kLetters));
  if (found.empty())
    return name + " is no path that can be followed; name a file or a folder of the trial";
  if (is_prefix(found, resolved(trial_dir.parent_path())))
    return name + " is a folder with the whole study in it; name a folder of the trial";
  return {};
}

bool lies_inside(const fs::path& path, const fs::path& directory) {
  const fs::path inner = resolved(path), outer = resolved_trial_dir(directory);
  return is_below(inner, outer) && is_below(place_of(path), outer);
}

void remove_own(const fs::path& path, const fs::path& directory) {
  if (!lies_inside(path, directory)) return;  // the trial has changed its directory
  // It may still do so now: what counts is the place that is looked at and removed.
  const fs::path place = place_of(path);
  if (is_below(place, resolved_trial_dir(directory))) remove_without_links(place);
}

bool share_files(const fs::path& left, const fs::path& right) {
  const fs::path one = resolved(left), other = resolved(right);
  // What cannot be looked at may be the same.
  return one.empty() || other.empty() || is_prefix(one, other) || is_prefix(other, one);
}

}  // namespace kolo::tune

// Where checkpoints lie, and which of them a study may remove.
//
// A study removes only what lies inside a trial's own directory, which the study made. Every other
// path that a trial names belongs to the user: it is remembered and never removed. The comparisons
// follow symbolic links, so that a link inside the directory does not lead out of it.
#pragma once

#include <filesystem>

namespace kolo::tune {

/// The absolute path of what a trial has named; a relative one is meant inside its directory.
std::filesystem::path checkpoint_path(const std::filesystem::path& named,
                                      const std::filesystem::path& trial_dir);

/// Below `directory`, and not that directory itself.
bool lies_inside(const std::filesystem::path& path, const std::filesystem::path& directory);

/// The same, or one inside the other: to remove one would harm the other.
bool share_files(const std::filesystem::path& left, const std::filesystem::path& right);

}  // namespace kolo::tune

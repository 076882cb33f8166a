// Where checkpoints lie, and which of them a study may remove.
//
// A study removes only what lies inside a trial's own directory, which the study made. Every other
// path that a trial names belongs to the user: it is remembered and never removed. The comparisons
// follow symbolic links, so that a link inside the directory does not lead out of it. The directory
// itself must be none: a trial may put a link to any other folder in its place.
#pragma once

#include <filesystem>
#include <string>

namespace kolo::tune {

/// The absolute path of what a trial has named; a relative one is meant inside its directory.
std::filesystem::path checkpoint_path(const std::filesystem::path& named,
                                      const std::filesystem::path& trial_dir);

/// Why a trial may not name this path, as returned by checkpoint_path(), as one of its checkpoints;
/// "" = it may. Nobody knows what else a path refers to that cannot be followed, and in a folder
/// with the whole study no trial could have anything removed.
std::string fault_of_checkpoint(const std::filesystem::path& path,
                                const std::filesystem::path& trial_dir);

/// As far as it exists, with symbolic links followed. Empty if that cannot be found out.
std::filesystem::path resolved(const std::filesystem::path& path);

/// Below `directory`, that of a trial, and not that directory itself. Of a link, that holds for it
/// and for what it leads to.
bool lies_inside(const std::filesystem::path& path, const std::filesystem::path& directory);

/// Removes what lies inside. Whatever the trial does to its directory meanwhile, nothing else is
/// removed.
void remove_own(const std::filesystem::path& path, const std::filesystem::path& directory);

/// The same, or one inside the other: to remove one would harm the other.
bool share_files(const std::filesystem::path& left, const std::filesystem::path& right);

}  // namespace kolo::tune

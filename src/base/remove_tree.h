// Removal in folders that other programs may change at the same time.
#pragma once

#include <filesystem>

namespace kolo {

/// Removes a file, or a folder with all in it. `path` is absolute, and no part of it but the last
/// is a link: if one has become a link since somebody looked, nothing is removed. Links below it
/// are removed and never followed. Goes on after what cannot be removed, and returns false then; so
/// too for folders that are nested more than 128 deep, which would take as many descriptors. What
/// is not there counts as removed.
bool remove_without_links(const std::filesystem::path& path);

}  // namespace kolo

// A job's folder: made, filled from its parents and from elsewhere, and copied away at the end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

/// Makes it. Throws io.
void make_folder(const std::filesystem::path& folder);

/// Links files of a parent's folder that match one of `patterns` (globs separated by blanks). A
/// name that is there already gets _ID of the parent at its end.
void link_inputs(const std::filesystem::path& folder, const std::filesystem::path& parent_folder,
                 JobId parent, const std::string& patterns);

/// The command that copies from a URL into the folder: /path, file:///path, host:/path,
/// ssh://host/path, gsiftp://… . Throws invalid_argument.
std::vector<std::string> stage_in_command(const std::string& url,
                                          const std::filesystem::path& folder);
/// The command that copies files of the folder to a URL; none if no file matches.
std::optional<std::vector<std::string>> stage_out_command(const std::filesystem::path& folder,
                                                          const std::string& patterns,
                                                          const std::string& url);

}  // namespace kolo::jobs

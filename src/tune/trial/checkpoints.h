// Directories with checkpoints: written completely or not at all, copied, and removed when there
// are more than the user wants to keep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kolo/search/value.h"

namespace kolo::tune {

/// A checkpoint of a trial that the database knows.
struct Checkpoint {
  std::filesystem::path path;
  std::int64_t iteration = 0;
  std::int64_t seq = 0;         ///< of its report in the journal
  std::optional<double> score;  ///< by checkpoint_score_attr, greater is better
};

/// Calls `write` with a new directory and gives it its name when that is done:
/// `trial_dir`/checkpoint_000007, or with -2, -3 … behind it if there is one.
std::filesystem::path make_checkpoint(
    const std::filesystem::path& trial_dir, std::int64_t iteration,
    const std::function<void(const std::filesystem::path& directory)>& write);

/// For ranks that take part in the writing of a checkpoint but do not keep one: calls `write` with
/// a directory that is gone afterwards. What a killed rank leaves is removed as other unfinished
/// checkpoints are.
void write_and_discard(const std::filesystem::path& trial_dir,
                       const std::function<void(const std::filesystem::path& directory)>& write);

/// What becomes of links in a folder that is copied.
enum class CopiedLinks {
  stay,          ///< links
  become_files,  ///< where they lead to files; others stay links
};
/// Copies a file, or a folder with all in it; files of the same names are replaced. Pipes and
/// sockets are left out, since they belong to programs that run. Throws filesystem_error.
void copy_files(const std::filesystem::path& from, const std::filesystem::path& to,
                CopiedLinks links);

/// Copies the checkpoint of another trial.
std::filesystem::path clone_checkpoint(const std::filesystem::path& source,
                                       const std::filesystem::path& trial_dir,
                                       std::int64_t iteration);

/// A checkpoint's worth by "accuracy" or "min-loss" in the result that it belongs to; greater is
/// better.
std::optional<double> checkpoint_score(std::string_view attribute, const search::Value& result);

/// The places of those to remove so that `keep` are left (-1 = keep all). The newest always stays.
std::vector<std::size_t> surplus_checkpoints(const std::vector<Checkpoint>& checkpoints,
                                             std::int64_t keep);

/// What make_checkpoint() has made in the directory, and what it was interrupted at.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& trial_dir);

}  // namespace kolo::tune

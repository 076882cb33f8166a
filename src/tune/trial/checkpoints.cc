#include "tune/trial/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoint_";
constexpr std::string_view kUnfinished = ".checkpoint.";

fs::path unfinished(const fs::path& trial_dir) {
  static std::atomic<unsigned> serial{0};
  return trial_dir / fmt::format("{}{}.{}", kUnfinished, ::getpid(), serial++);
}

fs::path finish(const fs::path& made, const fs::path& trial_dir, std::int64_t iteration) {
  const std::string name = fmt::format("{}{:06}", kCheckpointPrefix, iteration);
  fs::path path = trial_dir / name;
  for (int n = 2; fs::exists(path); ++n) path = trial_dir / fmt::format("{}-{}", name, n);
  fs::rename(made, path);
  return path;
}

}  // namespace

fs::path make_checkpoint(const fs::path& trial_dir, std::int64_t iteration,
                         const std::function<void(const fs::path&)>& write) {
  const fs::path directory = unfinished(trial_dir);
  try {
    fs::create_directories(directory);
    write(directory);
    return finish(directory, trial_dir, iteration);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    throw_error(ErrorCode::io, "cannot save a checkpoint: {}", error.what());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    throw;
  }
}

void write_and_discard(const fs::path& trial_dir,
                       const std::function<void(const fs::path&)>& write) {
  std::error_code none;
  if (!fs::is_directory(trial_dir, none)) {  // another host, with disks of its own
    const TempDir elsewhere("kolo-rank");
    write(elsewhere.path());
    return;
  }
  const fs::path directory = unfinished(trial_dir);
  fs::create_directory(directory, none);
  if (none) throw_error(ErrorCode::io, "cannot make {}: {}", directory.string(), none.message());
  try {
    write(directory);
  } catch (...) {
    fs::remove_all(directory, none);
    throw;
  }
  fs::remove_all(directory, none);
}

fs::path clone_checkpoint(const fs::path& source, const fs::path& trial_dir,
                          std::int64_t iteration) {
  return make_checkpoint(trial_dir, iteration, [&](const fs::path& directory) {
    fs::copy(source, directory, fs::copy_options::recursive);
  });
}

std::vector<std::size_t> surplus_checkpoints(const std::vector<Checkpoint>& checkpoints,
                                             std::int64_t keep) {
  std::vector<std::size_t> surplus;
  if (keep < 0 || checkpoints.size() <= static_cast<std::size_t>(keep)) return surplus;
  // Worst first; without scores, oldest first. The newest is where a restart begins.
  for (std::size_t i = 0; i + 1 < checkpoints.size(); ++i) surplus.push_back(i);
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::stable_sort(surplus.begin(), surplus.end(), [&](std::size_t left, std::size_t right) {
    return checkpoints[left].score.value_or(kNone) < checkpoints[right].score.value_or(kNone);
  });
  surplus.resize(
      std::min(surplus.size(),
               checkpoints.size() - static_cast<std::size_t>(std::max<std::int64_t>(keep, 1))));
  std::sort(surplus.begin(), surplus.end());
  return surplus;
}

void remove_unknown_checkpoints(const fs::path& trial_dir, const std::vector<Checkpoint>& known) {
  std::error_code none;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(trial_dir, none)) {
    const std::string name = entry.path().filename().string();
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const Checkpoint& one) {
      return one.path == entry.path();
    });
    if (name.starts_with(kUnfinished) || (name.starts_with(kCheckpointPrefix) && !is_known))
      leftovers.push_back(entry.path());
  }
  for (const auto& path : leftovers) {
    log::info("removing {}: no report refers to it", path.string());
    fs::remove_all(path, none);
  }
}

}  // namespace kolo::tune

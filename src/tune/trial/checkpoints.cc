#include "tune/trial/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/metric_order.h"
#include "tune/output/trial_log.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoint_";
constexpr std::size_t kIterationDigits = 6;
constexpr std::string_view kUnfinished = ".checkpoint.";

fs::path unfinished(const fs::path& trial_dir) {
  static std::atomic<unsigned> serial{0};
  return trial_dir / fmt::format("{}{}.{}", kUnfinished, ::getpid(), serial++);
}

fs::path finish(const fs::path& made, const fs::path& trial_dir, std::int64_t iteration) {
  const std::string name = fmt::format("{}{:0{}}", kCheckpointPrefix, iteration, kIterationDigits);
  fs::path path = trial_dir / name;
  for (int n = 2; fs::symlink_status(path).type() != fs::file_type::not_found; ++n)
    path = trial_dir / fmt::format("{}-{}", name, n);
  fs::rename(made, path);
  return path;
}

/// A name that unfinished() or finish() gives. A program may have folders of its own with names
/// that begin likewise.
bool is_made_here(std::string_view name) {
  const auto skip_digits = [&name] {
    const auto digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits;
  };
  const auto skip = [&name](std::string_view text) {
    const bool found = name.starts_with(text);
    if (found) name.remove_prefix(text.size());
    return found;
  };
  if (skip(kUnfinished)) return skip_digits() > 0 && skip(".") && skip_digits() > 0 && name.empty();
  if (!skip(kCheckpointPrefix) || skip_digits() < kIterationDigits) return false;
  return name.empty() || (skip("-") && skip_digits() > 0 && name.empty());
}

}  // namespace

fs::path make_checkpoint(const fs::path& trial_dir, std::int64_t iteration,
                         const std::function<void(const fs::path&)>& write) {
  const fs::path directory = unfinished(trial_dir);
  try {
    fs::create_directories(directory);
    write(directory);
    // The study's journal may name it as soon as this returns, so it is on disk by then.
    sync_tree_to_disk(directory);
    fs::path path = finish(directory, trial_dir, iteration);
    sync_to_disk(trial_dir);
    sync_to_disk(trial_dir.parent_path());  // the trial's directory may be new
    return path;
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

void copy_files(const fs::path& from, const fs::path& to, CopiedLinks links) {
  std::error_code none;
  const auto type = fs::symlink_status(from).type();
  if (type == fs::file_type::directory) {
    fs::create_directory(to, from);
    for (const auto& entry : fs::directory_iterator(from))
      copy_files(entry.path(), to / entry.path().filename(), links);
  } else if (type == fs::file_type::regular ||
             (type == fs::file_type::symlink && links == CopiedLinks::become_files &&
              fs::is_regular_file(from, none))) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  } else if (type == fs::file_type::symlink) {
    fs::remove(to);
    fs::copy_symlink(from, to);
  }
}

fs::path clone_checkpoint(const fs::path& source, const fs::path& trial_dir,
                          std::int64_t iteration) {
  std::error_code none;
  if (fs::symlink_status(trial_dir, none).type() != fs::file_type::not_found)
    require_trial_directory(trial_dir);
  return make_checkpoint(trial_dir, iteration, [&](const fs::path& directory) {
    const fs::path whole = fs::canonical(source);  // may be named by a link
    // The other trial may remove the files that links lead to.
    copy_files(whole, fs::is_directory(whole) ? directory : directory / whole.filename(),
               CopiedLinks::become_files);
  });
}

std::optional<double> checkpoint_score(std::string_view attribute, const search::Value& result) {
  constexpr std::string_view kMin = "min-";
  if (attribute.empty()) return std::nullopt;
  const bool smaller = attribute.starts_with(kMin);
  if (smaller) attribute.remove_prefix(kMin.size());
  const search::Value* value = result.find_path(attribute);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return smaller ? -value->as_number() : value->as_number();
}

std::vector<std::size_t> surplus_checkpoints(const std::vector<Checkpoint>& checkpoints,
                                             std::int64_t keep) {
  std::vector<std::size_t> surplus;
  if (keep < 0 || checkpoints.size() <= static_cast<std::size_t>(keep)) return surplus;
  // Worst first, which are those without a score or with NaN; among them the oldest. The newest is
  // where a restart begins.
  for (std::size_t i = 0; i + 1 < checkpoints.size(); ++i) surplus.push_back(i);
  const auto score = [&checkpoints](std::size_t place) {
    return checkpoints[place].score.value_or(std::numeric_limits<double>::quiet_NaN());
  };
  std::stable_sort(surplus.begin(), surplus.end(), [&](std::size_t left, std::size_t right) {
    return is_better_metric(score(right), score(left), /*lower_is_better=*/false);
  });
  surplus.resize(
      std::min(surplus.size(),
               checkpoints.size() - static_cast<std::size_t>(std::max<std::int64_t>(keep, 1))));
  std::sort(surplus.begin(), surplus.end());
  return surplus;
}

std::vector<fs::path> checkpoints_in(const fs::path& trial_dir) {
  std::error_code none;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(trial_dir, none))
    if (is_made_here(entry.path().filename().string())) found.push_back(entry.path());
  return found;
}

}  // namespace kolo::tune

// Files are named by their step, so that sorting by name is sorting by time, also when the head of
// a file is damaged. A file is written as a whole under another name and renamed. Reading goes from
// the newest (or best) file to older ones until one passes its checksums.
#include "base/files.h"

#include <algorithm>
#include <fstream>

#include "base/errors.h"
#include "base/log.h"
#include "base/metric_order.h"
#include "kolo/torch/checkpoint.h"
#include "train/checkpoint/format.h"

namespace kolo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kSuffix = ".kolo";

fs::path file_name(std::uint64_t step) { return fmt::format("{}{:012}{}", kPrefix, step, kSuffix); }

bool has_our_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

std::string first_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(train::kHeadBytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

CheckpointFiles::CheckpointFiles(CheckpointOptions options) : options_(std::move(options)) {
  if (options_.keep_last < 1)
    throw_error(ErrorCode::invalid_argument, "checkpoints: keep_last is {}, but must be at least 1",
                options_.keep_last);
  make_lasting_directories(options_.directory);
}

CheckpointInfo CheckpointFiles::write(std::uint64_t step, const CheckpointParts& parts,
                                      std::optional<double> metric) {
  CheckpointInfo info{options_.directory / file_name(step), step, metric};
  remove_abandoned_parts(options_.directory, kPrefix, kSuffix);  // they may have filled the disk
  write_file_atomically(info.path, train::encode_checkpoint({step, metric, parts}));
  try {
    remove_old(info.path);
  } catch (const Error& error) {  // the new one is safe
    log::warning("checkpoint: old ones are not removed: {}", error.message());
  }
  return info;
}

std::vector<CheckpointInfo> CheckpointFiles::list() const {
  std::vector<CheckpointInfo> all;
  std::error_code error;
  fs::directory_iterator entry(options_.directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!has_our_name(entry->path())) continue;
    CheckpointInfo info{entry->path(), 0, std::nullopt};
    if (auto head = train::decode_head(first_bytes(entry->path()))) {
      info.step = head->step;
      info.metric = head->metric;
    }
    all.push_back(std::move(info));
  }
  if (error)
    throw_error(ErrorCode::io, "checkpoints: cannot look into {}: {}", options_.directory.string(),
                error.message());
  // By name, which has the step in it: so a file whose head is damaged keeps its place.
  std::sort(all.begin(), all.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return a.path.filename() < b.path.filename();
  });
  return all;
}

CheckpointParts CheckpointFiles::read(const fs::path& path) {
  return train::decode_checkpoint(read_file(path), path.string()).parts;
}

std::optional<CheckpointFiles::Loaded> CheckpointFiles::read_first_whole(
    std::vector<CheckpointInfo> wanted) const {
  Loaded loaded;
  for (CheckpointInfo& info : wanted) {
    try {
      loaded.parts = read(info.path);
      loaded.info = std::move(info);
      return loaded;
    } catch (const Error& error) {
      log::warning("checkpoint: {}; trying the one before it", error.message());
      loaded.damaged.push_back(error.message());
    }
  }
  if (!loaded.damaged.empty())
    throw_error(ErrorCode::corruption,
                "checkpoints: all {} files in {} are damaged; the newest: {}",
                loaded.damaged.size(), options_.directory.string(), loaded.damaged.front());
  return std::nullopt;
}

std::optional<CheckpointFiles::Loaded> CheckpointFiles::read_latest() const {
  std::vector<CheckpointInfo> all = list();
  std::reverse(all.begin(), all.end());
  return read_first_whole(std::move(all));
}

std::optional<CheckpointFiles::Loaded> CheckpointFiles::read_best() const {
  std::vector<CheckpointInfo> all = list();
  std::erase_if(all, [](const CheckpointInfo& info) { return !info.metric; });
  std::stable_sort(all.begin(), all.end(), [&](const CheckpointInfo& a, const CheckpointInfo& b) {
    return is_better(*a.metric, *b.metric);
  });
  return read_first_whole(std::move(all));
}

bool CheckpointFiles::is_better(double a, double b) const noexcept {
  return is_better_metric(a, b, options_.lower_is_better);
}

void CheckpointFiles::remove_old(const fs::path& written) const {
  std::vector<CheckpointInfo> all = list();
  // What was written last is the newest, also if files of later steps are there: of another run, or
  // damaged, so that this one goes on from before them.
  std::erase_if(
      all, [&](const CheckpointInfo& info) { return info.path.filename() > written.filename(); });
  const CheckpointInfo* best = nullptr;
  for (const CheckpointInfo& info : all)
    if (info.metric && (best == nullptr || is_better(*info.metric, *best->metric))) best = &info;
  const std::size_t kept = static_cast<std::size_t>(options_.keep_last);
  for (std::size_t i = 0; i + kept < all.size(); ++i) {
    if (options_.keep_best && &all[i] == best) continue;
    std::error_code ignored;  // it may be gone already; it will be tried again next time
    fs::remove(all[i].path, ignored);
  }
}

}  // namespace kolo

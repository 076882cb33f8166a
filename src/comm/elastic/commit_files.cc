#include "comm/elastic/commit_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/plural.h"

namespace kolo::comm::elastic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "kolocmit";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kKept = 2;
constexpr std::string_view kPrefix = "commit-", kSuffix = ".kolo";

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof hash))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    hash = hash_combine(hash, word);
  }
  return hash;
}

/// Commits that cannot be seen are not commits that are not there.
void check_readable(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator readable(directory, error);
  if (!error || error == std::errc::no_such_file_or_directory ||
      error == std::errc::not_a_directory)
    return;
  throw_error(ErrorCode::io,
              "the commits in {} cannot be read: {}; make the directory readable, or give another "
              "one to start from the beginning",
              directory.string(), error.message());
}

void put_aside(const fs::path& damaged) {
  std::error_code error;
  fs::rename(damaged, damaged.string() + ".damaged", error);
  log::warning("{} is damaged{}; the commit before it is used", damaged.string(),
               error ? " and cannot be renamed: " + error.message()
                     : " and was renamed to " + damaged.filename().string() + ".damaged");
}

}  // namespace

std::string encode_commit(const StoredCommit& commit) {
  ByteWriter writer;
  writer.raw(kMagic).u32(kVersion).u64(commit.commits);
  writer.u32(static_cast<std::uint32_t>(commit.parts.size()));
  for (const std::string& part : commit.parts) writer.u64(part.size()).raw(part);
  writer.u64(hash_of(writer.bytes()));
  return writer.bytes();
}

StoredCommit decode_commit(std::string_view bytes, std::string_view origin) {
  constexpr std::size_t kHashBytes = sizeof(std::uint64_t);
  try {
    if (!bytes.starts_with(kMagic)) throw_error(ErrorCode::corruption, "it is no commit of kolo");
    ByteReader head(bytes.substr(kMagic.size()));
    if (const auto version = head.u32(); version > kVersion)
      throw_error(ErrorCode::unsupported, "{}: this kolo cannot read version {}", origin, version);
    if (bytes.size() < kHashBytes || ByteReader(bytes.substr(bytes.size() - kHashBytes)).u64() !=
                                         hash_of(bytes.substr(0, bytes.size() - kHashBytes)))
      throw_error(ErrorCode::corruption, "it is damaged");
    StoredCommit commit;
    commit.commits = head.u64();
    for (auto left = head.count(sizeof(std::uint64_t)); left > 0; --left) {
      const auto size = head.u64();
      commit.parts.emplace_back(head.raw(size));
    }
    return commit;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corruption) throw;
    throw_error(ErrorCode::corruption, "{}: {}", origin, error.message());
  }
}

void CommitFiles::write(const StoredCommit& commit) const {
  make_lasting_directories(directory_);
  remove_abandoned_parts(directory_, kPrefix, kSuffix);  // first: they may have filled the disk
  const auto written = directory_ / fmt::format("{}{:012}{}", kPrefix, commit.commits, kSuffix);
  write_file_atomically(written, encode_commit(commit));
  // What was written last is the newest, also if a file of a higher number is there.
  auto others = list();
  std::erase(others, written);
  for (std::size_t i = 0; i + kKept - 1 < others.size(); ++i) {
    std::error_code ignored;
    fs::remove(others[i], ignored);
  }
}

void CommitFiles::try_write(const StoredCommit& commit, std::uint64_t every) {
  try {
    write(commit);
    if (std::exchange(cannot_write_, false)) log::warning("commits go to disk again");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    if (!std::exchange(cannot_write_, true))
      log::warning(
          "commit {} could not go to disk: {}; the job goes on and tries again every {} commits",
          commit.commits, error.message(), every);
  }
}

std::vector<fs::path> CommitFiles::list() const {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(directory_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<StoredCommit> CommitFiles::read_latest() const {
  check_readable(directory_);
  auto files = list();
  std::vector<fs::path> damaged;
  std::string what_is_wrong;  // with the newest
  for (; !files.empty(); files.pop_back()) {
    try {
      auto commit = decode_commit(read_file(files.back()), files.back().string());
      for (const fs::path& path : damaged) put_aside(path);
      return commit;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) continue;  // another rank has removed it meanwhile
      if (error.code() != ErrorCode::corruption) throw;
      if (damaged.empty()) what_is_wrong = error.message();
      damaged.push_back(files.back());
    }
  }
  if (damaged.empty()) return std::nullopt;
  throw_error(ErrorCode::corruption,
              "{}, and none of the {} in {} is whole; put back a copy of one, or give another "
              "directory to start from the beginning",
              what_is_wrong, counted(static_cast<int>(damaged.size()), "commit"),
              directory_.string());
}

}  // namespace kolo::comm::elastic

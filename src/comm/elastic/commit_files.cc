#include "comm/elastic/commit_files.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/hash.h"
#include "base/log.h"

namespace kolo::comm::elastic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "kolocmit";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kKept = 2;

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof hash))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    hash = hash_combine(hash, word);
  }
  return hash;
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
  write_file_atomically(directory_ / fmt::format("commit-{:012}.kolo", commit.commits),
                        encode_commit(commit));
  auto files = list();
  for (std::size_t i = 0; i + kKept < files.size(); ++i) {
    std::error_code ignored;
    fs::remove(files[i], ignored);
  }
}

std::vector<fs::path> CommitFiles::list() const {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("commit-") && name.ends_with(".kolo")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<StoredCommit> CommitFiles::read_latest() const {
  auto files = list();
  for (; !files.empty(); files.pop_back()) {
    try {
      return decode_commit(read_file(files.back()), files.back().string());
    } catch (const Error& error) {
      log::warning("{}; the one before it is used", error.message());
    }
  }
  return std::nullopt;
}

}  // namespace kolo::comm::elastic

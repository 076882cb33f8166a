// Commits of an elastic job on disk, so that all of its processes may die.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kolo::comm::elastic {

struct StoredCommit {
  std::uint64_t commits = 0;       ///< since the start of the job
  std::vector<std::string> parts;  ///< of the State, in their order
};

/// magic "kolocmit"   u32 version   u64 commits   u32 number of parts, each: u64 size, bytes
/// u64 hash of all the above
std::string encode_commit(const StoredCommit& commit);
/// Throws corruption, naming `origin`; unsupported for a newer version.
StoredCommit decode_commit(std::string_view bytes, std::string_view origin);

/// The files of one job in one directory, of which the newest two are kept.
class CommitFiles {
 public:
  explicit CommitFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Makes the directory if it is not there. Returns when the file is safe, which is one of the two
  /// that are kept, whatever others there are. Throws io.
  void write(const StoredCommit& commit) const;
  /// The same for a job that tries again `every` so many commits: its state in memory is well,
  /// whatever the disk is. What would be thrown as io is logged, once until a file is written.
  void try_write(const StoredCommit& commit, std::uint64_t every);
  /// The newest that is whole. Newer ones that are damaged are logged and renamed to NAME.damaged,
  /// so that they do not count as the newest. Nothing if there are no files. Throws corruption if
  /// there are some, but none is whole; unsupported if the newest is of a newer version; io if the
  /// directory is there but cannot be read.
  [[nodiscard]] std::optional<StoredCommit> read_latest() const;
  /// Oldest first.
  [[nodiscard]] std::vector<std::filesystem::path> list() const;

 private:
  std::filesystem::path directory_;
  bool cannot_write_ = false;  // the last commit could not go to disk
};

}  // namespace kolo::comm::elastic

// Small files: read whole, write atomically, and private temporary directories.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace kolo {

inline constexpr mode_t kPrivateFile = 0600;
inline constexpr mode_t kPrivateDirectory = 0700;

/// The whole content. Throws not_found if there is no such file, io otherwise.
/// Works for files without a size too (/proc).
std::string read_file(const std::filesystem::path& path);

/// A file in a folder that other programs write to as well. Throws failed_precondition if something
/// else has its name: a pipe would hold up who opens it, and a link may lead to a file that nobody
/// meant. Throws io, and not_found.
Fd open_plain_file(const std::filesystem::path& path, int flags, mode_t mode = kPrivateFile);
/// The whole content of such a file.
std::string read_plain_file(const std::filesystem::path& path);

/// The last bytes of such a file, at most `bytes` of them and none before the place `from`. Empty
/// for a file that is missing or cannot be read: it is for messages about something else that
/// failed.
std::string tail_of_file(const std::filesystem::path& path, std::size_t bytes,
                         std::size_t from = 0);

/// Readers see the old content or the new one, never a part; after a return the new one survives a
/// crash of the machine (temporary file beside it, fsync, rename). `mode` is exact, whatever the
/// umask. A link or a pipe of this name is replaced.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           mode_t mode = 0644);
/// Removes from a directory what writers that were killed have left of files named PREFIX…SUFFIX.
/// What has been written to within the last hour stays: somebody may be at it.
void remove_abandoned_parts(const std::filesystem::path& directory, std::string_view prefix,
                            std::string_view suffix) noexcept;
/// Like write_file_atomically(), for what a user has named, such as /dev/stdout: a device or a pipe
/// gets the content, and a link stays, since the file that it points to is written.
void write_output_file(const std::filesystem::path& path, std::string_view content);

/// The file, or the names in the directory, survive a crash of the machine when this returns.
/// Throws io.
void sync_to_disk(const std::filesystem::path& path);
/// A directory with all the directories and files below it.
void sync_tree_to_disk(const std::filesystem::path& path);

/// Makes `path` and what is missing above it, which survives a crash of the machine when this
/// returns. Throws io.
void make_lasting_directories(const std::filesystem::path& path);

/// Makes `path` and what is missing above it; a directory made here belongs to nobody else.
/// Throws failed_precondition if `path` exists and others may enter it or it is not ours.
void make_private_directory(const std::filesystem::path& path);

/// Where kolo keeps what is the user's own: $XDG_STATE_HOME/kolo, else ~/.local/state/kolo.
/// Throws failed_precondition if neither is known.
std::filesystem::path state_folder();

/// Writes all of it, going on after partial writes and signals.
void write_all(int fd, std::string_view data, std::string_view what);
/// The same of text that waits to be written. What was written is taken away from it, also where
/// this throws: a disk that becomes full takes a part, which must not be written again.
void write_pending(int fd, std::string& pending, std::string_view what);

/// A directory of its own that is removed with all it holds.
class TempDir {
 public:
  /// Below $TMPDIR, else /tmp. `prefix` is for people who look.
  explicit TempDir(std::string_view prefix = "kolo");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kolo

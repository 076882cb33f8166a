// An atomic write goes to a temporary file in the same directory, is flushed to disk, and is
// renamed; then the directory is flushed, so that the rename itself survives a power failure. The
// rename puts a file in the place of whatever is there: nobody who may write to the directory can
// make kolo wait for a pipe or write elsewhere. What a user names as an output is another thing.
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/env.h"
#include "base/errors.h"

namespace kolo {
namespace fs = std::filesystem;

namespace {

std::string read_to_the_end(int fd, const fs::path& path) {
  std::string content;
  char chunk[16384];
  while (true) {
    ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read {}", path.string());
    if (got == 0) return content;
    content.append(chunk, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw_error(ErrorCode::not_found, "cannot read {}: no such file", path.string());
    throw_errno("cannot read {}", path.string());
  }
  return read_to_the_end(fd.get(), path);
}

Fd open_plain_file(const fs::path& path, int flags, mode_t mode) {
  // Without waiting for whoever might be at the other end of a pipe.
  Fd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
  struct stat facts {};
  const bool is_other = fd.valid() ? ::fstat(fd.get(), &facts) == 0 && !S_ISREG(facts.st_mode)
                                   : errno == ELOOP || errno == ENXIO || errno == EISDIR;
  if (is_other)
    throw_error(ErrorCode::failed_precondition,
                "cannot open {}: it is no plain file but a link, a pipe or the like",
                path.string());
  if (!fd.valid() && errno == ENOENT)
    throw_error(ErrorCode::not_found, "cannot open {}: no such file", path.string());
  if (!fd.valid()) throw_errno("cannot open {}", path.string());
  return fd;
}

std::string read_plain_file(const fs::path& path) {
  const Fd fd = open_plain_file(path, O_RDONLY);
  return read_to_the_end(fd.get(), path);
}

std::string tail_of_file(const fs::path& path, std::size_t bytes, std::size_t from) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const off_t end = file.valid() ? ::lseek(file.get(), 0, SEEK_END) : -1;
  if (end <= static_cast<off_t>(from)) return {};
  std::string text(std::min(bytes, static_cast<std::size_t>(end) - from), '\0');
  const auto begin = end - static_cast<off_t>(text.size());
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), begin);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::filesystem::path state_folder() {
  if (const auto state = environment("XDG_STATE_HOME"))
    return std::filesystem::path(*state) / "kolo";
  if (const auto home = environment("HOME"))
    return std::filesystem::path(*home) / ".local/state/kolo";
  throw_error(ErrorCode::failed_precondition,
              "there is no place to keep anything: set HOME or XDG_STATE_HOME");
}

void write_all(int fd, std::string_view data, std::string_view what) {
  while (!data.empty()) {
    ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("cannot write {}", what);
    data.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_pending(int fd, std::string& pending, std::string_view what) {
  while (!pending.empty()) {
    const ssize_t written = ::write(fd, pending.data(), pending.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("cannot write {}", what);
    pending.erase(0, static_cast<std::size_t>(written));
  }
}

void write_file_atomically(const fs::path& path, std::string_view content, mode_t mode) {
  std::string temporary = path.string() + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) throw_errno("cannot create a temporary file beside {}", path.string());
  try {
    if (::fchmod(fd.get(), mode) != 0) throw_errno("cannot set the mode of {}", temporary);
    write_all(fd.get(), content, temporary);
    if (::fsync(fd.get()) != 0) throw_errno("cannot write {} to disk", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw_errno("cannot rename {} to {}", temporary, path.string());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  // The rename itself is on disk once the directory is.
  sync_to_disk(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void remove_abandoned_parts(const fs::path& directory, std::string_view prefix,
                            std::string_view suffix) noexcept try {
  constexpr std::string_view kEnding = ".XXXXXX";
  constexpr auto kAtWork = std::chrono::hours(1);
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.size() < kEnding.size() || !name.starts_with(prefix)) continue;
    const std::size_t end = name.size() - kEnding.size();
    const bool has_ending =
        name[end] == '.' && std::all_of(name.begin() + end + 1, name.end(),
                                        [](unsigned char c) { return std::isalnum(c) != 0; });
    if (!has_ending || !std::string_view(name).substr(0, end).ends_with(suffix)) continue;
    std::error_code unknown;
    const auto written = fs::last_write_time(entry->path(), unknown);
    if (!unknown && written + kAtWork < now) fs::remove(entry->path(), unknown);
  }
} catch (const std::exception&) {  // for want of memory; there is another time
}

void write_output_file(const fs::path& path, std::string_view content) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) throw_errno("cannot open {}", path.string());
    return write_all(fd.get(), content, path.string());
  }
  std::error_code error;
  write_file_atomically(fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path,
                        content);
}

void sync_to_disk(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Not every file system can do that for directories.
  if (fd.valid() && ::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    throw_errno("cannot write {} to disk", path.string());
}

void sync_tree_to_disk(const fs::path& path) {
  const fs::file_status status = fs::symlink_status(path);
  if (fs::is_directory(status))
    for (const auto& entry : fs::directory_iterator(path)) sync_tree_to_disk(entry.path());
  if (fs::is_directory(status) || fs::is_regular_file(status)) sync_to_disk(path);
}

void make_lasting_directories(const fs::path& path) {
  std::vector<fs::path> above;  // of those that are missing
  const fs::path whole = fs::absolute(path).lexically_normal();
  for (fs::path missing = whole; !missing.empty() && !fs::exists(missing);
       missing = missing.parent_path())
    above.push_back(missing.parent_path());
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_error(ErrorCode::io, "cannot make {}: {}", path.string(), error.message());
  for (const auto& directory : above) sync_to_disk(directory);
}

void make_private_directory(const fs::path& path) {
  if (path.has_parent_path() && !fs::exists(path.parent_path()))
    make_private_directory(path.parent_path());
  if (::mkdir(path.c_str(), kPrivateDirectory) == 0) return;
  if (errno != EEXIST) throw_errno("cannot create directory {}", path.string());
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) throw_errno("cannot look at {}", path.string());
  if (!S_ISDIR(info.st_mode))
    throw_error(ErrorCode::failed_precondition, "{} is not a directory", path.string());
  if (info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0)
    throw_error(ErrorCode::failed_precondition,
                "{} must belong to this user alone; try: chmod 700 {}", path.string(),
                path.string());
}

TempDir::TempDir(std::string_view prefix) {
  const fs::path base = environment("TMPDIR").value_or("/tmp");
  std::string name = (base / fmt::format("{}.XXXXXX", prefix)).string();
  if (::mkdtemp(name.data()) == nullptr)
    throw_errno("cannot create a directory in {}", base.string());
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kolo

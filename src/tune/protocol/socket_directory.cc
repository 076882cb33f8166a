#include "tune/protocol/socket_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSocketPrefix = "kolo-trials";

Fd open_directory(const fs::path& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// The path still leads to what was opened.
bool is_there(const fs::path& path, const Fd& directory) {
  struct stat opened {
  }, found{};
  return ::fstat(directory.get(), &opened) == 0 && ::lstat(path.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

/// Only with its lock, and as long as that is held.
void remove_if_abandoned(const fs::path& path) {
  const Fd directory = open_directory(path);
  struct stat info {};
  if (!directory.valid() || ::fstat(directory.get(), &info) != 0 || info.st_uid != ::geteuid() ||
      ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0)
    return;
  log::debug("removing {}, whose study was killed", path.string());
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

SocketDirectory::SocketDirectory() {
  remove_abandoned_socket_directories();
  // Between its making and its locking somebody may take it for an abandoned one. Once it is locked
  // and still there it stays.
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    directory_.emplace(kSocketPrefix);
    lock_ = open_directory(directory_->path());
    if (lock_.valid() && ::flock(lock_.get(), LOCK_EX) == 0 && is_there(directory_->path(), lock_))
      return;
  }
  throw_error(ErrorCode::io, "cannot keep a directory in {}",
              directory_->path().parent_path().string());
}

void remove_abandoned_socket_directories() {
  const fs::path base = environment("TMPDIR").value_or("/tmp");
  std::error_code none;
  std::vector<fs::path> candidates;
  for (const auto& entry : fs::directory_iterator(base, none))
    if (entry.path().filename().string().starts_with(std::string(kSocketPrefix) + '.'))
      candidates.push_back(entry.path());
  for (const auto& path : candidates) remove_if_abandoned(path);
}

}  // namespace kolo::tune

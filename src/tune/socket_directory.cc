#include "tune/socket_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "kolo-trials";
/// Between making a directory and locking it there is an instant; nobody needs a minute for it.
constexpr std::time_t kYoungSeconds = 60;

Fd open_directory(const fs::path& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Its lock can be had, and it is no directory that is being made just now.
bool is_abandoned(const fs::path& path) {
  const Fd directory = open_directory(path);
  struct stat info {};
  if (!directory.valid() || ::fstat(directory.get(), &info) != 0 || info.st_uid != ::geteuid() ||
      ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0)
    return false;
  return ::faccessat(directory.get(), "trial.sock", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
         ::time(nullptr) - info.st_mtime > kYoungSeconds;
}

}  // namespace

SocketDirectory::SocketDirectory() : directory_(kPrefix), lock_(open_directory(directory_.path())) {
  // Who looks for abandoned ones may have it for an instant.
  if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX) != 0)
    throw_errno("cannot lock {}", directory_.path().string());
  remove_abandoned_socket_directories();
}

void remove_abandoned_socket_directories() {
  const fs::path base = environment("TMPDIR").value_or("/tmp");
  std::error_code none;
  std::vector<fs::path> abandoned;
  for (const auto& entry : fs::directory_iterator(base, none))
    if (entry.path().filename().string().starts_with(std::string(kPrefix) + '.') &&
        is_abandoned(entry.path()))
      abandoned.push_back(entry.path());
  for (const auto& path : abandoned) {
    log::debug("removing {}, whose study was killed", path.string());
    fs::remove_all(path, none);
  }
}

}  // namespace kolo::tune

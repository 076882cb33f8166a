#include "base/named_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/errors.h"
#include "base/files.h"

namespace kolo {

Fd lock_named_file(const std::filesystem::path& path) {
  for (;;) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile));
    if (!file.valid()) throw_errno("cannot open {}", path.string());
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
    // One that has ended may have removed the file in between.
    struct stat opened {
    }, named{};
    if (::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino)
      return file;
  }
}

}  // namespace kolo

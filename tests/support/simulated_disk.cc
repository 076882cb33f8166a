// Functions of the C library that write, flush and name files, with others in front of them that
// tell the image of the disk what has happened.
#include "support/simulated_disk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include "support/disk_image.h"

namespace kolo::test {
namespace fs = std::filesystem;
namespace {

/// Set while the image itself uses files, whose doings do not count.
thread_local bool is_at_work = false;
struct AtWork {
  AtWork() { is_at_work = true; }
  ~AtWork() { is_at_work = false; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

std::mutex mutex;
DiskImage* active = nullptr;

/// Tells the disk, if there is one.
template <class Tell>
void tell(Tell&& tell_it) {
  if (is_at_work) return;
  const AtWork at_work;
  const int error = errno;
  {
    const std::lock_guard lock(mutex);
    if (active != nullptr) tell_it(*active);
  }
  errno = error;
}

fs::path whole_path(int folder, const char* path) {
  const fs::path named(path);
  if (named.is_absolute()) return named;
  std::error_code error;
  if (folder == AT_FDCWD) return fs::current_path(error) / named;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(folder), error) / named;
}

/// The function of the C library that one of these stands before.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

using Open = int(int, const char*, int, ...);

int open_and_tell(int folder, const char* path, int flags, mode_t mode) {
  static Open* const real = next<Open>("openat64");
  bool was_there = true;
  if ((flags & O_CREAT) != 0) {
    struct stat status {};
    was_there = ::fstatat(folder, path, &status, 0) == 0;
  }
  const int fd = real(folder, path, flags, mode);
  if (fd >= 0)
    tell([&](auto& disk) {
      disk.opened(fd, whole_path(folder, path), !was_there,
                  (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY, mode);
    });
  return fd;
}

int make_and_tell(char* path, int flags) {
  static auto* const real = next<int(char*, int)>("mkostemp64");
  const int fd = real(path, flags);
  if (fd >= 0)
    tell([&](auto& disk) { disk.opened(fd, whole_path(AT_FDCWD, path), true, false, 0600); });
  return fd;
}

FILE* open_stream_and_tell(const char* path, const char* mode) {
  static auto* const real = next<FILE*(const char*, const char*)>("fopen64");
  const bool was_there = ::access(path, F_OK) == 0;
  FILE* stream = real(path, mode);
  if (stream != nullptr)
    tell([&](auto& disk) {
      disk.opened(::fileno(stream), whole_path(AT_FDCWD, path), !was_there, mode[0] == 'w', 0644);
    });
  return stream;
}

ssize_t write_at_and_tell(int fd, const void* data, std::size_t size, off64_t at) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  const ssize_t written = real(fd, data, size, at);
  if (written > 0)
    tell([&](auto& disk) {
      disk.written(fd, static_cast<std::size_t>(at),
                   {static_cast<const char*>(data), static_cast<std::size_t>(written)});
    });
  return written;
}

/// So many bytes were written where the file's own place was before.
void tell_appended(int fd, std::string bytes) {
  tell([&](auto& disk) {
    const off64_t end = ::lseek64(fd, 0, SEEK_CUR);
    if (end < 0) return;  // a pipe or a socket
    const auto at = static_cast<std::size_t>(end) - bytes.size();
    disk.written(fd, at, std::move(bytes));
  });
}

int resize_and_tell(int fd, off64_t size) {
  static auto* const real = next<int(int, off64_t)>("ftruncate64");
  const int status = real(fd, size);
  if (status == 0) tell([&](auto& disk) { disk.resized(fd, static_cast<std::size_t>(size)); });
  return status;
}

ssize_t send_and_tell(int to, int from, off64_t* at, std::size_t size) {
  static auto* const real = next<ssize_t(int, int, off64_t*, std::size_t)>("sendfile64");
  const off64_t begin = at != nullptr ? *at : ::lseek64(from, 0, SEEK_CUR);
  const ssize_t sent = real(to, from, at, size);
  if (sent > 0) {
    std::string bytes(static_cast<std::size_t>(sent), '\0');
    if (::pread64(from, bytes.data(), bytes.size(), begin) == sent)
      tell_appended(to, std::move(bytes));
  }
  return sent;
}

int flush_and_tell(int fd, const char* name) {
  const int status = next<int(int)>(name)(fd);
  if (status == 0) tell([&](auto& disk) { disk.flushed(fd); });
  return status;
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

SimulatedDisk::SimulatedDisk(const fs::path& folder) {
  const AtWork at_work;
  image_ = std::make_unique<DiskImage>(folder);
  const std::lock_guard lock(mutex);
  active = image_.get();
}

SimulatedDisk::~SimulatedDisk() {
  const std::lock_guard lock(mutex);
  active = nullptr;
}

void SimulatedDisk::fail_after(std::int64_t changes) {
  const std::lock_guard lock(mutex);
  image_->fail_after(changes);
}

bool SimulatedDisk::has_failed() const {
  const std::lock_guard lock(mutex);
  return image_->has_failed();
}

std::int64_t SimulatedDisk::changes() const {
  const std::lock_guard lock(mutex);
  return image_->changes();
}

void SimulatedDisk::lie() {
  const std::lock_guard lock(mutex);
  image_->lies = true;
}

void SimulatedDisk::restart(Random& random) {
  const AtWork at_work;
  const std::lock_guard lock(mutex);
  image_->restart(random);
}

}  // namespace kolo::test

// In place of the functions of the C library, for this program and the libraries that it uses.
// NOLINTBEGIN
extern "C" {

using namespace kolo::test;

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_and_tell(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_and_tell(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_and_tell(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_and_tell(folder, path, flags, mode);
}
int mkostemp(char* path, int flags) { return make_and_tell(path, flags); }
int mkostemp64(char* path, int flags) { return make_and_tell(path, flags); }
FILE* fopen(const char* path, const char* mode) { return open_stream_and_tell(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream_and_tell(path, mode); }
int close(int fd) {
  static auto* const real = next<int(int)>("close");
  tell([&](auto& disk) { disk.closed(fd); });
  return real(fd);
}
int closedir(DIR* folder) {
  static auto* const real = next<int(DIR*)>("closedir");
  const int fd = ::dirfd(folder);
  tell([&](auto& disk) { disk.closed(fd); });
  return real(folder);
}
int fclose(FILE* stream) {
  static auto* const real = next<int(FILE*)>("fclose");
  const int fd = ::fileno(stream);
  tell([&](auto& disk) { disk.closed(fd); });
  return real(stream);
}
ssize_t write(int fd, const void* data, std::size_t size) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  const ssize_t written = real(fd, data, size);
  if (written > 0)
    tell_appended(fd, {static_cast<const char*>(data), static_cast<std::size_t>(written)});
  return written;
}
ssize_t writev(int fd, const struct iovec* pieces, int count) {
  static auto* const real = next<ssize_t(int, const struct iovec*, int)>("writev");
  const ssize_t written = real(fd, pieces, count);
  if (written > 0) {
    std::string bytes;
    for (int i = 0; i < count; ++i)
      bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
    bytes.resize(static_cast<std::size_t>(written));
    tell_appended(fd, std::move(bytes));
  }
  return written;
}
ssize_t pwrite(int fd, const void* data, std::size_t size, off_t at) {
  return write_at_and_tell(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, std::size_t size, off64_t at) {
  return write_at_and_tell(fd, data, size, at);
}
ssize_t sendfile(int to, int from, off_t* at, std::size_t size) {
  return send_and_tell(to, from, at, size);
}
ssize_t sendfile64(int to, int from, off64_t* at, std::size_t size) {
  return send_and_tell(to, from, at, size);
}
int ftruncate(int fd, off_t size) noexcept { return resize_and_tell(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept { return resize_and_tell(fd, size); }
int fsync(int fd) { return flush_and_tell(fd, "fsync"); }
int fdatasync(int fd) { return flush_and_tell(fd, "fdatasync"); }
int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  const int status = real(path, mode);
  if (status == 0) tell([&](auto& disk) { disk.made_folder(whole_path(AT_FDCWD, path), mode); });
  return status;
}
int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  const int status = real(from, to);
  if (status == 0)
    tell([&](auto& disk) { disk.renamed(whole_path(AT_FDCWD, from), whole_path(AT_FDCWD, to)); });
  return status;
}
int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  const int status = real(path);
  if (status == 0) tell([&](auto& disk) { disk.removed(whole_path(AT_FDCWD, path)); });
  return status;
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  const int status = real(folder, path, flags);
  if (status == 0) tell([&](auto& disk) { disk.removed(whole_path(folder, path)); });
  return status;
}
int rmdir(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("rmdir");
  const int status = real(path);
  if (status == 0) tell([&](auto& disk) { disk.removed(whole_path(AT_FDCWD, path)); });
  return status;
}
int remove(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("remove");
  const int status = real(path);
  if (status == 0) tell([&](auto& disk) { disk.removed(whole_path(AT_FDCWD, path)); });
  return status;
}
}
// NOLINTEND

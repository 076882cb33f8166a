// A process attaches the segment of another through /proc/PID/fd/FD, for which both must belong to
// the same user. The nonce at the beginning of the segment shows that this descriptor still is the
// one that was announced: process numbers and descriptors are reused. Ranks that are threads of one
// process share the mapping.
#include "comm/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>

#include "base/errors.h"
#include "base/mutex.h"

namespace kolo::comm {
namespace {

/// Segments created by this process, so that ranks which are its threads find the same mapping
/// (and a race detector sees one address for one datum).
struct Created {
  Mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_nonce KOLO_GUARDED_BY(mutex);
};
Created& created() {
  static auto* instance = new Created;
  return *instance;
}

std::byte* map(int fd, std::size_t bytes, const char* what) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED)
    throw_errno("shared memory: cannot map {} bytes of {} (KOLO_SHARED_MEMORY_BYTES sets the size)",
                bytes, what);
  return static_cast<std::byte*>(base);
}

/// False if the segment has no such bytes.
bool read_bytes(int fd, std::span<std::byte> into, std::size_t offset) {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::size_t>(got);
  }
  return true;
}

/// The segment of a living process, which is the one that was announced.
Fd open_segment(const Segment::Ticket& ticket, int flags, const std::string& whose) {
  const std::string path = fmt::format("/proc/{}/fd/{}", ticket.pid, ticket.fd);
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT)
      throw_error(ErrorCode::peer_lost, "shared memory of {}: process {} is gone", whose,
                  ticket.pid);
    throw_errno(
        "shared memory of {}: cannot open {} (all ranks of a host must run as one user, in one "
        "container)",
        whose, path);
  }
  std::uint64_t nonce = 0;
  if (!read_bytes(fd.get(), std::as_writable_bytes(std::span(&nonce, 1)), 0) ||
      nonce != ticket.nonce)
    throw_error(ErrorCode::corruption,
                "shared memory of {}: {} is not the segment that the rank announced", whose, path);
  return fd;
}

}  // namespace

Segment::Segment(Fd fd, std::size_t bytes, std::uint64_t nonce, pid_t owner)
    : fd_(std::move(fd)), bytes_(bytes), nonce_(nonce), owner_(owner) {}

std::shared_ptr<Segment> Segment::create(std::size_t bytes) {
  // A segment is a file to the kernel: to make a larger one would kill the process (SIGXFSZ).
  rlimit largest_file{};
  if (::getrlimit(RLIMIT_FSIZE, &largest_file) == 0 && largest_file.rlim_cur < bytes)
    throw_error(ErrorCode::failed_precondition,
                "the limit for the size of files is {} bytes, but the ranks need {} of shared "
                "memory; raise it (ulimit -f)",
                largest_file.rlim_cur, bytes);
  Fd fd(::memfd_create("kolo", MFD_CLOEXEC));
  if (!fd.valid()) throw_errno("shared memory: memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    throw_errno("shared memory: cannot make a segment of {} bytes", bytes);
  std::uint64_t nonce = 0;
  if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) throw_errno("getrandom");
  const int raw = fd.get();
  std::shared_ptr<Segment> segment(new Segment(std::move(fd), bytes, nonce, ::getpid()));
  segment->base_ = map(raw, bytes, "a new segment");
  *reinterpret_cast<std::uint64_t*>(segment->base_) = nonce;
  MutexLock lock(created().mutex);
  created().by_nonce[nonce] = segment;
  return segment;
}

Segment::Ticket Segment::ticket() const {
  return {.version = 1, .nonce = nonce_, .bytes = bytes_, .pid = owner_, .fd = fd_.get()};
}

std::shared_ptr<Segment> Segment::attach(const Ticket& ticket, const std::string& whose) {
  if (ticket.version != 1)
    throw_error(ErrorCode::corruption,
                "shared memory of {}: it has version {}, but this program has version 1; run all "
                "ranks with the same version of kolo",
                whose, ticket.version);
  if (ticket.pid == ::getpid()) {
    MutexLock lock(created().mutex);
    auto it = created().by_nonce.find(ticket.nonce);
    if (it != created().by_nonce.end())
      if (auto segment = it->second.lock()) return segment;
    throw_error(ErrorCode::peer_lost, "shared memory of {}: its owner has left", whose);
  }
  const Fd fd = open_segment(ticket, O_RDWR, whose);
  std::shared_ptr<Segment> segment(new Segment(Fd(), ticket.bytes, ticket.nonce, ticket.pid));
  segment->base_ = map(fd.get(), ticket.bytes, "another rank");
  return segment;
}

Segment::Reader::Reader(const Ticket& ticket, const std::string& whose)
    : fd_(open_segment(ticket, O_RDONLY, whose)), whose_(whose) {}

void Segment::Reader::read(std::size_t offset, std::span<std::byte> into) const {
  if (!read_bytes(fd_.get(), into, offset))
    throw_error(ErrorCode::io, "shared memory of {}: it has no {} bytes that could be read", whose_,
                into.size());
}

Segment::~Segment() {
  if (fd_.valid()) {
    MutexLock lock(created().mutex);
    created().by_nonce.erase(nonce_);
  }
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

void Segment::populate(std::size_t offset, std::size_t length) {
  if (::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0)
    return;
  throw_error(ErrorCode::unavailable, "shared memory: cannot allocate {} bytes: {}", length,
              std::strerror(errno));
}

void Segment::discard(std::size_t offset, std::size_t length) noexcept {
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(length));
}

}  // namespace kolo::comm

#include "comm/shm/arena.h"

#include <unistd.h>

#include <cstring>
#include <iterator>

#include "base/errors.h"

namespace kolo::comm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 128;  // two cache lines: neighbours are prefetched in pairs

constexpr std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Arena::Arena(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {
  free_[kPage] = segment_->bytes() - kPage;  // the first page holds the segment's own header
}

std::size_t Arena::take(std::size_t bytes) {
  const std::size_t unit = bytes >= kPage ? kPage : kLine;
  const std::size_t length = rounded_up(bytes == 0 ? 1 : bytes, unit);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [start, free_length] = *it;
    const std::size_t offset = rounded_up(start, unit);
    if (offset + length > start + free_length) continue;
    free_.erase(it);
    if (offset > start) free_[start] = offset - start;
    if (offset + length < start + free_length)
      free_[offset + length] = start + free_length - offset - length;
    used_[offset] = length;
    return offset;
  }
  throw_error(ErrorCode::unavailable,
              "shared memory: {} bytes do not fit into the segment of {} bytes; free buffers, or "
              "raise KOLO_SHARED_MEMORY_BYTES",
              bytes, segment_->bytes());
}

void* Arena::reserve(std::size_t bytes) {
  MutexLock lock(mutex_);
  return segment_->base() + take(bytes);
}

void* Arena::allocate(std::size_t bytes) {
  void* memory = reserve(bytes);
  try {
    segment_->populate(offset_of(memory), bytes);
  } catch (...) {
    release(memory);
    throw;
  }
  return memory;
}

void Arena::release(void* memory) noexcept {
  // A fork that ends its copy of a buffer must not empty the memory, which is the parent's.
  if (segment_->owner() != ::getpid()) return;
  MutexLock lock(mutex_);
  auto it = used_.find(offset_of(memory));
  if (it == used_.end()) return;
  auto [offset, length] = *it;
  used_.erase(it);
  // Free memory is always zero, so that what is allocated is.
  if (length >= kPage)
    segment_->discard(offset, length);
  else
    std::memset(memory, 0, length);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + length == next->first) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += length;
      return;
    }
  }
  free_[offset] = length;
}

}  // namespace kolo::comm

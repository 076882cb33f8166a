// The allocator of a rank's own segment.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "comm/shm/segment.h"
#include "kolo/buffer.h"

namespace kolo::comm {

/// First fit over free ranges, neighbours merged: O(log n) to release, O(n) at worst to allocate;
/// buckets of gradients are few and large. Page-sized blocks are page-aligned, so that given-back
/// pages really go; small ones are 128-byte aligned. Thread-safe.
class Arena final : public SharedMemory {
 public:
  explicit Arena(std::shared_ptr<Segment> segment);

  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;

  /// As allocate(), but pages come into being when they are touched.
  void* reserve(std::size_t bytes);

  [[nodiscard]] const std::shared_ptr<Segment>& segment() const noexcept { return segment_; }
  [[nodiscard]] std::size_t offset_of(const void* memory) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(memory) - segment_->base());
  }

 private:
  std::size_t take(std::size_t bytes) KOLO_REQUIRES(mutex_);

  std::shared_ptr<Segment> segment_;
  Mutex mutex_;
  std::map<std::size_t, std::size_t> free_ KOLO_GUARDED_BY(mutex_);  // offset -> length
  std::map<std::size_t, std::size_t> used_ KOLO_GUARDED_BY(mutex_);  // offset -> length
};

}  // namespace kolo::comm

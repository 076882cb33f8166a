// Memory that lives in the communicator's shared segment.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace kolo {

/// Where Buffers come from; implemented by the runtime.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  /// 64-byte aligned, zero-filled, never null. Throws kolo::Error (unavailable) when memory is
  /// short.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
};

/// An owning array of T in memory that the other ranks of this host can see: collectives on it
/// work in place, without a copy. Movable; must be destroyed before its Context, or outlives it
/// harmlessly (the segment is kept alive by its buffers).
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<SharedMemory> home, std::size_t count)
      : home_(std::move(home)),
        data_(count == 0 ? nullptr : static_cast<T*>(home_->allocate(count * sizeof(T)))),
        size_(count) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) home_->release(data_);
  }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<T> span() noexcept { return {data_, size_}; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }

  void swap(Buffer& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  std::shared_ptr<SharedMemory> home_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kolo

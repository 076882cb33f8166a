// Memory for messages on their way: aligned, not initialised, kept for the next operation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kolo::comm {

class WireScratch {
 public:
  /// At least `bytes`, 64-byte aligned. Contents are lost when it grows.
  std::byte* get(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace kolo::comm

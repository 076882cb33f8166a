// Memory that a communicator keeps between operations.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kolo/buffer.h"

namespace kolo::comm {

struct Scratch {
  explicit Scratch(std::shared_ptr<SharedMemory> memory) : home(std::move(memory)) {}

  /// At least `bytes` of shared memory, valid until the next call. Grows, never shrinks.
  std::byte* own(std::size_t bytes) {
    if (shared.size() < bytes) {
      shared = Buffer<std::byte>();
      shared = Buffer<std::byte>(home, bytes);
    }
    return shared.data();
  }

  std::vector<const void*> inputs;

 private:
  std::shared_ptr<SharedMemory> home;
  Buffer<std::byte> shared;
};

}  // namespace kolo::comm

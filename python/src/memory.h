// Memory of kolo that Python sees through the buffer protocol.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "kolo/communicator.h"

namespace kolo::python {

/// Copies share the memory, which lives as long as any of them or any view of it.
struct Memory {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;

  /// Ordinary memory, aligned as tensors want it.
  static Memory on_heap(std::size_t bytes) {
    constexpr auto kAlignment = std::align_val_t(64);
    void* raw = ::operator new(bytes == 0 ? 1 : bytes, kAlignment);
    return {{raw, [](void* gone) { ::operator delete(gone, std::align_val_t(64)); }},
            static_cast<std::byte*>(raw),
            bytes};
  }
  /// Memory that the other ranks of this host see: collectives on it need no copies.
  static Memory shared(Communicator& communicator, std::size_t bytes) {
    auto buffer = std::make_shared<Buffer<std::byte>>(
        communicator.allocate<std::byte>(bytes == 0 ? 1 : bytes));
    std::byte* data = buffer->data();
    return {std::move(buffer), data, bytes};
  }
};

}  // namespace kolo::python

#include "support/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> bytes{0};

/// What a piece takes of the heap.
long cost_of(void* piece) noexcept {
  return static_cast<long>(::malloc_usable_size(piece) + sizeof(std::size_t));
}

void* counted(void* piece) {
  if (piece == nullptr) throw std::bad_alloc();
  bytes += cost_of(piece);
  return piece;
}

void take_back(void* piece) noexcept {
  if (piece == nullptr) return;
  bytes -= cost_of(piece);
  std::free(piece);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(step, (size + step - 1) / step * step));
}
void operator delete(void* piece) noexcept { take_back(piece); }
void operator delete(void* piece, std::size_t) noexcept { take_back(piece); }
void operator delete(void* piece, std::align_val_t) noexcept { take_back(piece); }
void operator delete(void* piece, std::size_t, std::align_val_t) noexcept { take_back(piece); }

long kolo::test::heap_bytes() noexcept { return bytes; }

// The physical limit of an allreduce of two ranks: two cores that add two buffers in place.
//
// Two threads meet at a spinning barrier, each adds its half of both buffers and writes the sum to
// both, and they meet again: no allreduce that leaves its result in both buffers can touch less
// memory. Mode "private" uses ordinary memory, mode "shared" a mapping of a memory file, as
// processes have to.
#include <immintrin.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "support/allreduce_loop.h"

namespace {

/// What one thread shows the other, on a line of its own.
struct alignas(64) Place {
  std::atomic<std::uint64_t> arrived{0};
  float* data = nullptr;
};

std::shared_ptr<float> shared_memory(std::size_t count) {
  const std::size_t bytes = (count * sizeof(float) + 4095) / 4096 * 4096;
  const int fd = memfd_create("limit", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw std::bad_alloc();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<float*>(memory), [bytes](float* p) { munmap(p, bytes); }};
}

void add_in_place(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

class LimitPeer {
 public:
  LimitPeer(Place* places, int rank) : places_(places), rank_(rank) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] static int size() { return 2; }
  static std::shared_ptr<float> allocate(const std::string& mode, std::size_t count) {
    return mode == "shared" ? shared_memory(count) : bench::plain_memory(count);
  }

  void allreduce(float* data, std::size_t count) {
    places_[rank_].data = data;
    barrier();
    // Halves meet on a cache line, so that the two cores never write to the same one.
    const std::size_t half = std::min(count, (count / 2 + 15) / 16 * 16);
    const std::size_t begin = rank_ == 0 ? 0 : half;
    const std::size_t end = rank_ == 0 ? half : count;
    add_in_place(places_[0].data + begin, places_[1].data + begin, end - begin);
    barrier();
  }

  void barrier() {
    ++epoch_;
    places_[rank_].arrived.store(epoch_, std::memory_order_release);
    while (places_[1 - rank_].arrived.load(std::memory_order_acquire) < epoch_) _mm_pause();
  }

 private:
  Place* places_;
  int rank_;
  std::uint64_t epoch_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::rank_main(argc, argv, [](const bench::RankArguments& arguments) {
    Place places[2];
    auto rank = [&](int r) {
      if (arguments.pin) bench::pin_to_core(r);
      LimitPeer peer(places, r);
      bench::serve(peer, arguments);
    };
    std::thread other([&] {
      try {
        rank(1);
      } catch (const std::exception& error) {
        // The other thread spins for this one and could never end by itself.
        std::fprintf(stderr, "limit: %s\n", error.what());
        std::_Exit(1);
      }
    });
    rank(0);
    other.join();
  });
}

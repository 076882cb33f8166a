// Waiting for a word in shared memory to reach a value, without burning a core.
//
// First spin, unless there are more ranks than cores: a value that another core is about to write
// arrives in a tenth of a microsecond. Then offer the core to others: the writer, or one that it
// waits for on the wire, may need it; if nobody does, that is spinning still. At last sleep on a
// futex, in slices, and look in between whether the one waited for is still there. Whoever learns
// that it is not rouses the sleeper, so that nobody waits for the end of a slice. A futex wake-up
// costs a system call on both sides and about 40 µs in a virtual machine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/deadline.h"

namespace kolo::comm {

class Waiter {
 public:
  /// `crowded`: more ranks than cores. `slice`: for how long it sleeps at most before it looks
  /// again.
  explicit Waiter(bool crowded, std::chrono::nanoseconds slice = kSlice)
      : crowded_(crowded), slice_(slice) {}

  /// Sets `word` to `value` and wakes whoever sleeps on it. `sleepers` counts those; one that is
  /// killed in its sleep stays counted, which costs superfluous wake-ups in a group that is broken.
  static void publish(std::atomic<std::uint64_t>& word, std::uint64_t value,
                      std::atomic<std::uint32_t>& sleepers) {
    // Sequentially consistent on purpose: were the store allowed to sink below the load, a sleeper
    // that did not see the value could be missed here.
    word.store(value, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake_all(word);
  }

  /// Returns once word >= target. `look` is called before each sleep and every slice of it; it
  /// throws to end the wait. One thread at a time.
  template <class Look>
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t target,
            std::atomic<std::uint32_t>& sleepers, Look&& look) const {
    for (int i = 0; i < kQuickSpins; ++i) {
      if (word.load(std::memory_order_acquire) >= target) return;
      pause();
    }
    if (spin(word, target)) return;
    const Rousable rousable(*this, word);
    while (true) {
      look();
      if (sleep(word, target, sleepers)) return;
    }
  }

  /// A wait that sleeps looks again at once. From any thread; returns within milliseconds.
  void rouse() const;

  /// Asks for a line that this core will write soon, without waiting for it.
  static void take_line(const void* address) {
#if defined(__x86_64__)
    // Spelt out: for a generic x86-64 the compiler's builtin would fetch the line for reading only.
    __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
  }

 private:
  static constexpr int kQuickSpins = 64;
  static constexpr std::chrono::milliseconds kSlice{50};

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// True once the word has the value, false when it is time to sleep.
  bool spin(const std::atomic<std::uint64_t>& word, std::uint64_t target) const;
  /// Sleeps until the word changes or a slice of time has passed; true once it has the value.
  bool sleep(const std::atomic<std::uint64_t>& word, std::uint64_t target,
             std::atomic<std::uint32_t>& sleepers) const;
  static void wake_all(const std::atomic<std::uint64_t>& word);

  /// Says on which word a wait is about to sleep, from before it looks: what happens after its look
  /// rouses it.
  class Rousable {
   public:
    Rousable(const Waiter& waiter, const std::atomic<std::uint64_t>& word) : waiter_(waiter) {
      waiter_.sleeps_on_.store(&word, std::memory_order_seq_cst);
    }
    ~Rousable() { waiter_.sleeps_on_.store(nullptr, std::memory_order_release); }
    Rousable(const Rousable&) = delete;
    Rousable& operator=(const Rousable&) = delete;

   private:
    const Waiter& waiter_;
  };

  bool crowded_;
  std::chrono::nanoseconds slice_;
  mutable std::atomic<const std::atomic<std::uint64_t>*> sleeps_on_{nullptr};
};

}  // namespace kolo::comm

// Waiting for a word in shared memory to reach a value, without burning a core.
//
// First spin, unless there are more ranks than cores: a value that another core is about to write
// arrives in a tenth of a microsecond. Then offer the core to others: the writer, or one that it
// waits for on the wire, may need it; if nobody does, that is spinning still. At last sleep on a
// futex, in slices, and look in between whether the one waited for is still there. A futex wake-up
// costs a system call on both sides and about 40 µs in a virtual machine.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace kolo::comm {

class Waiter {
 public:
  /// `crowded`: more ranks than cores.
  explicit Waiter(bool crowded) : crowded_(crowded) {}

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
  /// throws to end the wait.
  template <class Look>
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t target,
            std::atomic<std::uint32_t>& sleepers, Look&& look) const {
    for (int i = 0; i < kQuickSpins; ++i) {
      if (word.load(std::memory_order_acquire) >= target) return;
      pause();
    }
    if (spin(word, target)) return;
    while (true) {
      look();
      if (sleep(word, target, sleepers)) return;
    }
  }

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

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// True once the word has the value, false when it is time to sleep.
  bool spin(const std::atomic<std::uint64_t>& word, std::uint64_t target) const;
  /// Sleeps until the word changes or a slice of time has passed; true once it has the value.
  static bool sleep(const std::atomic<std::uint64_t>& word, std::uint64_t target,
                    std::atomic<std::uint32_t>& sleepers);
  static void wake_all(std::atomic<std::uint64_t>& word);

  bool crowded_;
};

}  // namespace kolo::comm

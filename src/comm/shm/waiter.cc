#include "comm/shm/waiter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

#include "comm/activity.h"

namespace kolo::comm {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(4);
constexpr auto kYieldTime = std::chrono::microseconds(400);
constexpr int kRouseTries = 20;
constexpr auto kRousePause = std::chrono::microseconds(50);

/// The half of the word that changes: a futex is 32 bits wide.
const std::uint32_t* low_half(const std::atomic<std::uint64_t>& word) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<const std::uint32_t*>(&word);
}

}  // namespace

bool Waiter::spin(const std::atomic<std::uint64_t>& word, std::uint64_t target) const {
  if (!crowded_) {
    const auto enough = Deadline::after(kSpinTime);
    do {
      for (int i = 0; i < kQuickSpins; ++i) {
        if (word.load(std::memory_order_acquire) >= target) return true;
        pause();
      }
    } while (!enough.passed());
  }
  const auto give_up = Deadline::after(kYieldTime);
  do {
    ::sched_yield();
    if (word.load(std::memory_order_acquire) >= target) return true;
  } while (!give_up.passed());
  return false;
}

bool Waiter::sleep(const std::atomic<std::uint64_t>& word, std::uint64_t target,
                   std::atomic<std::uint32_t>& sleepers) const {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t seen = word.load(std::memory_order_seq_cst);
  if (seen < target) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(slice_);
    const timespec slice{seconds.count(), (slice_ - seconds).count()};
    const Asleep asleep;
    ::syscall(SYS_futex, low_half(word), FUTEX_WAIT, static_cast<std::uint32_t>(seen), &slice,
              nullptr, 0);
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  return word.load(std::memory_order_acquire) >= target;
}

void Waiter::rouse() const {
  // Again and again, for one that has looked but does not sleep yet would miss a single call. One
  // that looks and goes on waiting is left to its slices.
  for (int i = 0; i < kRouseTries; ++i) {
    const auto* const word = sleeps_on_.load(std::memory_order_acquire);
    if (word == nullptr) return;
    wake_all(*word);
    std::this_thread::sleep_for(kRousePause);
  }
}

void Waiter::wake_all(const std::atomic<std::uint64_t>& word) {
  ::syscall(SYS_futex, low_half(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace kolo::comm

#include "comm/shm/waiter.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace kolo::comm {
namespace {

/// So long that a test whose wait nobody ends runs into its time limit.
constexpr auto kForever = std::chrono::hours(1);

TEST(Waiter, IsRousedWhateverItIsDoing) {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint32_t> sleepers{0};
  for (int round = 0; round < 200; ++round) {
    const Waiter waiter(/*crowded=*/true, kForever);
    std::atomic<bool> is_lost{false};
    std::atomic<bool> has_looked{false};
    std::atomic<bool> has_ended{false};
    std::thread sleeper([&] {
      const auto look = [&] {
        has_looked = true;
        if (is_lost) throw std::runtime_error("lost");
      };
      EXPECT_THROW(waiter.wait(word, 1, sleepers, look), std::runtime_error);
      has_ended = true;
    });
    while (!has_looked) std::this_thread::yield();
    // Between its look and its sleep, or in its sleep.
    if (round % 2 != 0)
      while (sleepers == 0) std::this_thread::yield();
    is_lost = true;
    // Once, but for a thread that is kept from its sleep for longer than a call of rouse() lasts.
    while (!has_ended) waiter.rouse();
    sleeper.join();
    EXPECT_EQ(sleepers, 0U);
  }
}

TEST(Waiter, GoesOnWaitingIfThereIsNoReasonToEnd) {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint32_t> sleepers{0};
  const Waiter waiter(/*crowded=*/true, kForever);
  std::thread sleeper([&] { waiter.wait(word, 1, sleepers, [] {}); });
  while (sleepers == 0) std::this_thread::yield();
  waiter.rouse();
  EXPECT_EQ(word, 0U);
  Waiter::publish(word, 1, sleepers);
  sleeper.join();
  waiter.rouse();  // nobody sleeps
}

}  // namespace
}  // namespace kolo::comm

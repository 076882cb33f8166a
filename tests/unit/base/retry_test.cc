#include "base/retry.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"
#include "support/given_clock.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;

TEST(Clock, TimesBeyondWhatItCountsEndWithIt) {
  EXPECT_EQ(clock_duration(1.5), 1500ms);
  for (const double seconds : {1e300, HUGE_VAL, std::nan("")})
    EXPECT_EQ(clock_duration(seconds), 1'000'000'000s);
  EXPECT_EQ(clock_duration(-1e300), -1'000'000'000s);
}

void fail_with(ErrorCode code) { throw Error(code, "no answer"); }

TEST(Retry, WaitsLongerAfterEachFailureAndForgetsItAfterASuccess) {
  test::GivenClock clock;
  Retry retry("the test", clock);
  int calls = 0;
  const auto fail = [&] {
    ++calls;
    fail_with(ErrorCode::unavailable);
  };
  EXPECT_FALSE(retry.attempt(fail));
  EXPECT_TRUE(retry.failing());
  EXPECT_FALSE(retry.attempt(fail));  // too early
  EXPECT_EQ(calls, 1);
  clock.advance(50ms);
  EXPECT_FALSE(retry.attempt(fail));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(retry.next() - clock.now(), 100ms);
  for (int i = 0; i < 20; ++i) {
    clock.advance(2s);
    retry.attempt(fail);
  }
  EXPECT_EQ(retry.next() - clock.now(), 2s);
  clock.advance(2s);
  EXPECT_TRUE(retry.attempt([] {}));
  EXPECT_FALSE(retry.failing());
  EXPECT_FALSE(retry.attempt(fail));
  EXPECT_EQ(retry.next() - clock.now(), 50ms);
}

TEST(Retry, ThrowsWhatDoesNotPass) {
  Retry retry("the test");
  EXPECT_THROW(retry.attempt([] { fail_with(ErrorCode::corruption); }), Error);
  EXPECT_FALSE(retry.failing());
}

TEST(Retry, ThrowsWhenItsPatienceIsOver) {
  test::GivenClock clock;
  Retry retry("the test", clock, 3s);
  const auto fail = [] { fail_with(ErrorCode::io); };
  EXPECT_FALSE(retry.attempt(fail));
  clock.advance(3s);
  EXPECT_FALSE(retry.attempt(fail));
  clock.advance(1s);
  EXPECT_THROW(retry.attempt(fail), Error);
}

}  // namespace
}  // namespace kolo

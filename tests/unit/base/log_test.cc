#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kolo/error.h"

namespace kolo {
namespace {

std::string printed_by(void (*action)()) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, LevelsHaveNames) {
  EXPECT_EQ(log::parse_level("info"), log::Level::info);
  try {
    (void)log::parse_level("loud");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.message(),
              "log level 'loud' is unknown; known: trace, debug, info, warning, error, fatal");
  }
}

TEST(Log, PrintsFromItsLevelOnWithTheRankInFront) {
  log::set_level(log::Level::info);
  log::set_rank(3);
  EXPECT_THAT(printed_by([] { log::info("transport: {}", "shm"); }),
              testing::EndsWith("[3] info: transport: shm\n"));
  EXPECT_EQ(printed_by([] { log::debug("unseen"); }), "");
  log::set_level(log::Level::error);
  EXPECT_EQ(printed_by([] { log::warning("unseen"); }), "");
  EXPECT_THAT(printed_by([] { log::error("seen"); }), testing::EndsWith("error: seen\n"));
  log::set_rank(-1);
  EXPECT_THAT(printed_by([] { log::error("alone"); }), testing::Not(testing::HasSubstr("[3]")));
  log::set_level(log::Level::warning);
}

}  // namespace
}  // namespace kolo

#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/files.h"
#include "base/log_file.h"
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

TEST(Log, WhatProgramsSayGivesTheTerminalNoOrders) {
  log::set_level(log::Level::error);
  EXPECT_THAT(printed_by([] { log::error("it said:\n\x1b]0;title\x07 {}", "\x1b[31mred"); }),
              testing::EndsWith("error: it said:\n ]0;title   [31mred\n"));
}

TEST(Log, AFileHasWhatStandardErrorDoesNotShow) {
  const TempDir scratch;
  const auto path = scratch.path() / "log";
  log::set_level(log::Level::error);
  {
    const log::File file(path);
    EXPECT_TRUE(log::enabled(log::Level::info));
    EXPECT_FALSE(log::enabled(log::Level::debug));
    EXPECT_EQ(printed_by([] { log::info("job {} starts", 7); }), "");
    EXPECT_THAT(printed_by([] { log::error("seen"); }), testing::EndsWith("error: seen\n"));
  }
  EXPECT_FALSE(log::enabled(log::Level::info));
  log::info("too late");
  EXPECT_THAT(read_file(path), testing::MatchesRegex("[-0-9]+ [.:0-9]+ info: job 7 starts\n"
                                                     "[-0-9]+ [.:0-9]+ error: seen\n"));
  EXPECT_THROW(log::File(scratch.path() / "log" / "beneath-a-file"), Error);
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
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

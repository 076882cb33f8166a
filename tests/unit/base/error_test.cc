#include <gtest/gtest.h>

#include <set>

#include "base/errors.h"

namespace kolo {
namespace {

TEST(Error, SaysCodeAndMessage) {
  try {
    throw_error(ErrorCode::not_found, "host '{}' is unknown", "h9");
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "not_found: host 'h9' is unknown");
  }
}

TEST(Error, CarriesTheLostRank) {
  Error error(ErrorCode::peer_lost, "rank 3 is gone", 3);
  EXPECT_EQ(error.rank(), 3);
  EXPECT_EQ(error.message(), "rank 3 is gone");
  EXPECT_EQ(Error(ErrorCode::io, "x").rank(), std::nullopt);
}

TEST(Error, ErrnoIsReadBeforeFormattingCanChangeIt) {
  errno = ENOENT;
  try {
    throw_errno("opening {}", "f");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(error.message(), "opening f: No such file or directory");
  }
}

TEST(Error, CheckNamesTheBrokenInvariant) {
  try {
    KOLO_CHECK(1 + 1 == 3);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(error.message().find("1 + 1 == 3"), std::string::npos);
  }
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 1; code <= 12; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), 12U);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(to_string(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
}  // namespace kolo

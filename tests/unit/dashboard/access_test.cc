#include "dashboard/access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace kolo::dashboard {
namespace {

const Access kAccess("0123abcd", "127.0.0.1", 8321);

TEST(Access, TakesTheTokenFromAddressCookieAndAuthorization) {
  EXPECT_TRUE(kAccess.knows({.token = "0123abcd"}));
  EXPECT_TRUE(kAccess.knows({.cookie = "other=1; kolo_dashboard_8321=0123abcd"}));
  EXPECT_TRUE(kAccess.knows({.authorization = "Bearer 0123abcd"}));
}

TEST(Access, RefusesEveryOtherToken) {
  for (const char* wrong : {"", "0123abce", "0123abc", "0123abcd0", "0123ABCD"}) {
    EXPECT_FALSE(kAccess.knows({.token = wrong})) << wrong;
    EXPECT_FALSE(kAccess.knows({.cookie = std::string("kolo_dashboard_8321=") + wrong})) << wrong;
    EXPECT_FALSE(kAccess.knows({.authorization = std::string("Bearer ") + wrong})) << wrong;
  }
  EXPECT_FALSE(kAccess.knows({.cookie = "kolo_dashboard_9999=0123abcd"}));
}

TEST(Access, AnswersUnderAddressesAndItsOwnNamesAlone) {
  for (const char* host : {"127.0.0.1:8321", "localhost:8321", "localhost:9000", "[::1]:8321"})
    EXPECT_FALSE(kAccess.objection({.host = host})) << host;
  for (const char* host : {"", "evil.example", "localhost.evil.example:8321", "127.0.0.1.nip.io"})
    EXPECT_TRUE(kAccess.objection({.host = host})) << host;
}

TEST(Access, ChangesComeFromItsOwnPage) {
  const std::string host = "localhost:8321";
  EXPECT_FALSE(kAccess.objection(
      {.host = host, .origin = "http://localhost:8321", .changes_something = true}));
  EXPECT_FALSE(kAccess.objection(
      {.host = host, .authorization = "Bearer 0123abcd", .changes_something = true}));
  EXPECT_TRUE(kAccess.objection({.host = host, .changes_something = true}));
  for (const char* origin : {"http://evil.example", "null", "http://localhost:8322"})
    EXPECT_TRUE(kAccess.objection({.host = host, .origin = origin})) << origin;
}

TEST(Access, CookieIsOutOfReachOfScriptsAndOtherSites) {
  const auto cookie = kAccess.cookie();
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos);
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos);
}

TEST(Access, KeepsItsTokenForItsOwnerAlone) {
  const TempDir scratch;
  const auto file = scratch.path() / "state" / "dashboard.token";
  const auto token = kept_token(file);
  EXPECT_EQ(token.size(), 48U);
  EXPECT_EQ(kept_token(file), token);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  write_file_atomically(file, "short");
  EXPECT_NE(kept_token(file), "short");
}

}  // namespace
}  // namespace kolo::dashboard

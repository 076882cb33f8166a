// Users of a PostgreSQL server who must prove a password, and what becomes of it.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

#include "base/errors.h"
#include "conformance/store/database_fixture.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kUser = "clerk";
constexpr const char* kPassword = "it is/hush@hush";
constexpr const char* kInUrl = "clerk:it%20is%2Fhush%40hush";

class StoreAuthentication : public DatabaseTest {
 protected:
  void SetUp() override {
    DatabaseTest::SetUp();
    if (IsSkipped()) return;
    ::unsetenv("PGPASSWORD");
    ::setenv("PGPASSFILE", password_file().c_str(), 1);
    server()->add_user(kUser, kPassword);
  }
  void TearDown() override { ::unsetenv("PGPASSFILE"); }

  [[nodiscard]] fs::path password_file() const { return scratch_.path() / "pgpass"; }
  void write_password_file(fs::perms mode) const {
    std::ofstream(password_file()) << "*:*:*:" << kUser << ':' << kPassword << '\n';
    fs::permissions(password_file(), mode);
  }

  static std::string refusal(const std::string& login) {
    try {
      store::open_database(server()->url_of(login));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      return error.what();
    }
    return "it was let in";
  }

  TempDir scratch_;
};
INSTANTIATE_TEST_SUITE_P(Server, StoreAuthentication, testing::Values("postgresql"),
                         [](const auto& info) { return info.param; });

TEST_P(StoreAuthentication, TheServerKeepsNoPasswordButWhatScramNeeds) {
  auto& row = database_->prepare("SELECT rolpassword FROM pg_authid WHERE rolname = $1");
  ASSERT_TRUE(row.bind(1, std::string_view(kUser)).next());
  EXPECT_THAT(std::string(row.text(0)), testing::StartsWith("SCRAM-SHA-256$"));
  row.reset();
}

TEST_P(StoreAuthentication, APasswordInTheUrlOpensEveryConnection) {
  auto database = store::open_database(server()->url_of(kInUrl));
  database->execute("CREATE TABLE mine (a BIGINT)");
  auto watch = database->watch("changes");
  database->notify("changes");
  EXPECT_TRUE(watch->wait(Deadline::after(10s)));
  // The first to speak after a restart learns that the server had gone; the connection that is
  // made then proves the password again.
  server()->stop();
  server()->start();
  const auto insert = [&] { return database->prepare("INSERT INTO mine (a) VALUES (1)").run(); };
  EXPECT_THROW(insert(), Error);
  EXPECT_EQ(insert(), 1);
  EXPECT_THAT(database->name(), testing::Not(testing::HasSubstr("hush")));
}

TEST_P(StoreAuthentication, AFileOfTheUsersOwnHasThePassword) {
  write_password_file(fs::perms::owner_read | fs::perms::owner_write);
  store::open_database(server()->url_of(kUser))->execute("CREATE TABLE mine (a BIGINT)");
}

TEST_P(StoreAuthentication, AFileThatOthersCanReadIsNotUsed) {
  write_password_file(fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
  EXPECT_THAT(refusal(kUser), testing::HasSubstr("no password supplied"));
}

TEST_P(StoreAuthentication, AWrongPasswordIsRefusedAndNotShown) {
  const std::string said = refusal("clerk:guess");
  EXPECT_THAT(said, testing::HasSubstr("password authentication failed"));
  EXPECT_THAT(said, testing::HasSubstr("postgresql://clerk@/clerk"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("guess")));
}

TEST_P(StoreAuthentication, APasswordAmongTheSettingsIsNotShownEither) {
  try {
    store::open_database(server()->url_of(kUser) + "&password=guess&sslpassword=key&user=other");
    FAIL() << "it was let in";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("&user=other"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("guess")));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("=key")));
  }
}

}  // namespace
}  // namespace kolo::test

#include "store/migrations.h"

#include <thread>

#include "base/errors.h"
#include "conformance/store/database_fixture.h"

namespace kolo::test {
namespace {

using store::Migration;

constexpr Migration kOld[] = {{1, "CREATE TABLE m (a BIGINT PRIMARY KEY) /*clustered*/"}};
constexpr Migration kNew[] = {kOld[0],
                              {2, "ALTER TABLE m ADD COLUMN b TEXT; UPDATE m SET b = 'x'"}};

class StoreMigrations : public DatabaseTest {};
INSTANTIATE_TEST_SUITE_P(All, StoreMigrations, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param; });

TEST_P(StoreMigrations, StepsAreTakenOnceAndKeepWhatIsThere) {
  EXPECT_EQ(schema_version(*database_, "room"), 0);
  migrate(*database_, "room", kOld);
  migrate(*database_, "room", kOld);
  database_->execute("INSERT INTO m (a) VALUES (5)");
  migrate(*database_, "room", kNew);
  EXPECT_EQ(schema_version(*database_, "room"), 2);
  EXPECT_EQ(schema_version(*database_, "other"), 0);
  auto& row = database_->prepare("SELECT a, b FROM m");
  ASSERT_TRUE(row.next());
  EXPECT_EQ(row.integer(0), 5);
  EXPECT_EQ(row.text(1), "x");
  row.reset();
}

TEST_P(StoreMigrations, ANewerDatabaseIsRefused) {
  migrate(*database_, "room", kNew);
  try {
    migrate(*database_, "room", kOld);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  }
}

TEST_P(StoreMigrations, AStepThatFailsLeavesNothing) {
  constexpr Migration kBroken[] = {kOld[0], {2, "CREATE TABLE half (a TEXT); NONSENSE"}};
  EXPECT_THROW(migrate(*database_, "room", kBroken), Error);
  EXPECT_EQ(schema_version(*database_, "room"), 0);
  migrate(*database_, "room", kNew);
}

TEST_P(StoreMigrations, ManyMayTryAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] { migrate(*connect(std::chrono::seconds(20)), "room", kNew); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(schema_version(*database_, "room"), 2);
}

}  // namespace
}  // namespace kolo::test

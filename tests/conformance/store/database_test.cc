#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <latch>
#include <limits>
#include <thread>

#include "base/errors.h"
#include "base/interrupt.h"
#include "conformance/store/database_fixture.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using store::Transaction;
using ::testing::HasSubstr;
using ::testing::Not;

template <class Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

class StoreDatabase : public DatabaseTest {
 protected:
  void SetUp() override {
    DatabaseTest::SetUp();
    if (!IsSkipped())
      database_->execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b DOUBLE PRECISION, c TEXT)");
  }
  void put(std::int64_t a, double b = 0, std::string_view c = "") {
    database_->prepare("INSERT INTO t (a, b, c) VALUES ($1, $2, $3)")
        .bind(1, a)
        .bind(2, b)
        .bind(3, c)
        .run();
  }
  static std::int64_t count(store::Database& database) {
    auto& row = database.prepare("SELECT COUNT(*) FROM t");
    EXPECT_TRUE(row.next());
    const auto rows = row.integer(0);
    row.reset();
    return rows;
  }
};
INSTANTIATE_TEST_SUITE_P(All, StoreDatabase, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param; });

TEST_P(StoreDatabase, TakesManyRowsAtOnce) {
  const std::string texts[] = {"", "\\N", "tab\tline\nreturn\rback\\slash", "it's \"č\""};
  {
    Transaction change(*database_, store::Locking::rows);
    auto rows = database_->insert_rows("t", {"a", "b", "c"});
    for (int i = 0; i < 4; ++i) rows->add(i).add(0.5 * i).add(texts[i]).end_row();
    for (int i = 4; i < 3000; ++i) rows->add(i).add_null().add_null().end_row();
    rows->finish();
    change.commit();
  }
  EXPECT_EQ(count(*database_), 3000);
  auto& row = database_->prepare("SELECT a, b, c FROM t WHERE a < 5 ORDER BY a");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(row.next());
    EXPECT_EQ(row.integer(0), i);
    EXPECT_EQ(row.number(1), 0.5 * i);
    EXPECT_EQ(row.text(2), texts[i]);
  }
  ASSERT_TRUE(row.next());
  EXPECT_TRUE(row.is_null(2));
}

TEST_P(StoreDatabase, KeepsTextThatIsNotUtf8AsFarAsItIs) {
  const std::string outside("it said \377\0 and \u010D", 17);
  put(1, 0, outside);
  {
    Transaction change(*database_);
    auto rows = database_->insert_rows("t", {"a", "c"});
    rows->add(2).add(outside).end_row();
    rows->finish();
    change.commit();
  }
  auto& row = database_->prepare("SELECT c FROM t ORDER BY a");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(row.next());
    EXPECT_EQ(row.text(0), "it said \uFFFD\uFFFD and \u010D");
  }
}

TEST_P(StoreDatabase, RefusesRowsOfAKnownKeyAndGoesOn) {
  put(2);
  EXPECT_EQ(code_of([this] {
              Transaction change(*database_);
              auto rows = database_->insert_rows("t", {"a"});
              for (int i = 0; i < 4; ++i) {
                rows->add(i);
                rows->end_row();
              }
              rows->finish();
              change.commit();
            }),
            ErrorCode::already_exists);
  EXPECT_EQ(count(*database_), 1);
  put(3);
}

TEST_P(StoreDatabase, ForgetsRowsOfADroppedWriter) {
  {
    Transaction change(*database_);
    auto rows = database_->insert_rows("t", {"a"});
    rows->add(1);
    rows->end_row();
  }
  EXPECT_EQ(count(*database_), 0);
  put(1);
}

TEST_P(StoreDatabase, GivesBackWhatWasPut) {
  const std::int64_t integers[] = {0, -1, std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  const double numbers[] = {0.1, -1e-300, 1.7976931348623157e308, 5e-324};
  const std::string texts[] = {"", "it's \"so\"", "č — 輪\n\t", std::string(100'000, 'x')};
  for (int i = 0; i < 4; ++i) put(integers[i], numbers[i], texts[i]);
  for (int i = 0; i < 4; ++i) {
    auto& row = database_->prepare("SELECT a, b, c FROM t WHERE a = $1").bind(1, integers[i]);
    ASSERT_TRUE(row.next());
    EXPECT_EQ(row.integer(0), integers[i]);
    EXPECT_EQ(row.number(1), numbers[i]);
    EXPECT_EQ(row.text(2), texts[i]);
    EXPECT_FALSE(row.next());
  }
}

TEST_P(StoreDatabase, KeepsNullApartFromZeroAndEmpty) {
  database_->prepare("INSERT INTO t (a, b, c) VALUES ($1, $2, $3)")
      .bind(1, 1)
      .bind(2, std::optional<double>())
      .bind_null(3)
      .run();
  put(2);
  auto& rows = database_->prepare("SELECT b, c FROM t ORDER BY a");
  ASSERT_TRUE(rows.next());
  EXPECT_TRUE(rows.is_null(0) && rows.is_null(1));
  ASSERT_TRUE(rows.next());
  EXPECT_FALSE(rows.is_null(0) || rows.is_null(1));
  rows.reset();
}

TEST_P(StoreDatabase, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(code_of([&] { put(1, NAN); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { put(1, INFINITY); }), ErrorCode::invalid_argument);
  EXPECT_EQ(count(*database_), 0);
}

TEST_P(StoreDatabase, CountsChangedRows) {
  for (int i = 0; i < 5; ++i) put(i);
  EXPECT_EQ(database_->prepare("UPDATE t SET b = 1 WHERE a >= $1").bind(1, 3).run(), 2);
  EXPECT_EQ(database_->prepare("DELETE FROM t WHERE a = $1").bind(1, 9).run(), 0);
}

TEST_P(StoreDatabase, AStatementStartsOverAfterItsLastRow) {
  put(1);
  put(2);
  auto& rows = database_->prepare("SELECT a FROM t ORDER BY a");
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(rows.next());
    EXPECT_EQ(rows.integer(0), 1);
    ASSERT_TRUE(rows.next());
    EXPECT_FALSE(rows.next());
  }
}

TEST_P(StoreDatabase, ErrorsSayWhatWasDoneAndShowNoSql) {
  put(1);
  const auto message_of = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "nothing was thrown";
  };
  const auto writing = message_of([&] { put(1); });
  EXPECT_THAT(writing, HasSubstr("writing to t: "));
  EXPECT_THAT(writing, Not(HasSubstr("INSERT")));
  const auto reading =
      message_of([&] { database_->prepare("SELECT nothing FROM nowhere").next(); });
  EXPECT_THAT(reading, HasSubstr("reading from nowhere: "));
  EXPECT_THAT(reading, Not(HasSubstr("SELECT")));
  EXPECT_THAT(message_of([&] { database_->execute("SELEKT 1"); }),
              HasSubstr("changing the database: "));
  const auto rows = message_of([&] {
    Transaction change(*database_);
    auto row = database_->insert_rows("t", {"a"});
    row->add(1).end_row();
    row->finish();
  });
  EXPECT_THAT(rows, HasSubstr("writing to t: "));
}

TEST_P(StoreDatabase, NamesTheKindsOfErrors) {
  put(1);
  EXPECT_EQ(code_of([&] { put(1); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { database_->prepare("SELECT nothing FROM nowhere").next(); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { database_->execute("SELEKT 1"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(count(*database_), 1);  // still usable
}

TEST_P(StoreDatabase, ATransactionIsAllOrNothing) {
  {
    Transaction change(*database_);
    put(1);
    put(2);
    EXPECT_TRUE(database_->in_transaction());
  }
  EXPECT_FALSE(database_->in_transaction());
  EXPECT_EQ(count(*database_), 0);
  {
    Transaction change(*database_);
    put(1);
    change.commit();
  }
  EXPECT_EQ(count(*connect()), 1);
}

TEST_P(StoreDatabase, AnErrorInsideATransactionUndoesIt) {
  put(7);
  EXPECT_EQ(code_of([&] {
              Transaction change(*database_);
              put(1);
              put(7);
              change.commit();
            }),
            ErrorCode::already_exists);
  EXPECT_EQ(count(*database_), 1);
  EXPECT_EQ(code_of([&] {
              Transaction one(*database_);
              Transaction two(*database_);
            }),
            ErrorCode::failed_precondition);
}

TEST_P(StoreDatabase, ReadersDoNotWaitForTheWriterAndSeeWhatWasBefore) {
  put(1);
  auto reader = connect(200ms);
  Transaction change(*database_);
  put(2);
  EXPECT_EQ(count(*reader), 1);
  change.commit();
  EXPECT_EQ(count(*reader), 2);
}

TEST_P(StoreDatabase, WritersExcludeEachOther) {
  auto other = connect(100ms);
  Transaction change(*database_);
  EXPECT_EQ(code_of([&] { Transaction second(*other); }), ErrorCode::unavailable);
  change.commit();
  Transaction second(*other);
  second.commit();
}

TEST_P(StoreDatabase, NothingIsLostBetweenManyWriters) {
  put(0, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] {
      auto mine = connect(20s);
      for (int round = 0; round < 50; ++round) {
        Transaction change(*mine);
        auto& row = mine->prepare("SELECT b FROM t WHERE a = 0");
        row.next();
        const double seen = row.number(0);
        row.reset();
        mine->prepare("UPDATE t SET b = $1 WHERE a = 0").bind(1, seen + 1).run();
        change.commit();
      }
    });
  for (auto& thread : threads) thread.join();
  auto& row = database_->prepare("SELECT b FROM t WHERE a = 0");
  ASSERT_TRUE(row.next());
  EXPECT_EQ(row.number(0), 200);
  row.reset();
}

TEST_P(StoreDatabase, NotificationsReachOtherConnections) {
  auto watch = connect()->watch("changes");
  auto deaf = database_->watch("others");
  EXPECT_FALSE(watch->wait(Deadline::after(20ms)));
  std::thread speaker([this] { connect()->notify("changes"); });
  EXPECT_TRUE(watch->wait(Deadline::after(10s)));
  speaker.join();
  EXPECT_FALSE(watch->wait(Deadline::after(20ms)));
  database_->notify("changes");
  database_->notify("changes");
  EXPECT_TRUE(watch->wait(Deadline::after(10s)));
  EXPECT_FALSE(deaf->wait(Deadline::after(20ms)));
}

TEST_P(StoreDatabase, SurvivesARestartOfTheServer) {
  if (server() == nullptr) GTEST_SKIP() << "a file has no server";
  put(1);
  auto watch = database_->watch("changes");
  server()->stop();
  EXPECT_EQ(code_of([&] { Transaction change(*database_); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { Transaction change(*database_); }), ErrorCode::unavailable);
  server()->start();
  {
    Transaction change(*database_);
    put(2);
    change.commit();
  }
  EXPECT_EQ(count(*database_), 2);
  EXPECT_TRUE(watch->wait(Deadline::after(10s)));  // it may have missed something
}

/// Whatever a database waits for: another writer, or a server that hangs.
class Obstacle {
 public:
  explicit Obstacle(PostgresServer* server, std::unique_ptr<store::Database> other)
      : server_(server), other_(std::move(other)) {
    if (server_ != nullptr)
      server_->freeze();
    else
      other_->begin();
  }
  ~Obstacle() {
    if (server_ != nullptr)
      server_->thaw();
    else
      other_->rollback();
  }
  Obstacle(const Obstacle&) = delete;
  Obstacle& operator=(const Obstacle&) = delete;

 private:
  PostgresServer* server_;
  std::unique_ptr<store::Database> other_;
};

TEST_P(StoreDatabase, EveryWaitHasAnEndAndWhatComesAfterItWorks) {
  database_ = connect(100ms);
  {
    const Obstacle obstacle(server(), connect());
    EXPECT_EQ(code_of([&] { put(1); }), ErrorCode::unavailable);
    const auto again = [&] { connect(100ms)->begin(); };
    EXPECT_EQ(code_of(again), ErrorCode::unavailable);
  }
  put(2);
  Transaction change(*database_);
  auto rows = database_->insert_rows("t", {"a"});
  rows->add(3).end_row();
  rows->finish();
  change.commit();
  EXPECT_GE(count(*database_), 2);
}

TEST_P(StoreDatabase, AProgramThatIsToldToEndDoesNotWaitForLong) {
  database_ = connect(24h);
  set_interrupt_check([]() noexcept { return true; });
  {
    const Obstacle obstacle(server(), connect());
    EXPECT_EQ(code_of([&] { put(1); }), ErrorCode::unavailable);
    EXPECT_EQ(code_of([&] { database_->begin(); }), ErrorCode::unavailable);
  }
  set_interrupt_check(nullptr);
  put(2);
}

TEST(OpenDatabase, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(code_of([] { store::open_database("mysql://x/y"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([] { store::open_database(""); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { store::open_database("sqlite:///a.db?fast=1"); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { store::open_database("/nowhere/at/all/x.db"); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([] { store::open_database("/tmp/not-there.db", {.create = false}); }),
            ErrorCode::not_found);
  EXPECT_EQ(code_of([] { store::open_database("postgresql:///x?host=/nowhere"); }),
            ErrorCode::unavailable);
}

TEST(OpenDatabase, DoesNotShowPasswords) {
  try {
    store::open_database("postgresql://me:hush@localhost:1/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("postgresql://me@localhost:1/x"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("hush")));
  }
  const auto told = [](const char* url) -> std::string {
    try {
      store::open_database(url);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  // libpq takes what is before the / for a port, and says so.
  const auto misread = told("postgresql://me:secret/part@localhost:1/x");
  EXPECT_THAT(misread, testing::Not(testing::HasSubstr("secret")));
  EXPECT_THAT(misread, testing::HasSubstr("%2F for /"));
  // A password that is also a word of the message does not hide the message.
  for (const char* url :
       {"postgresql://me:localhost@localhost:1/x", "postgresql://me:local%68ost@localhost:1/x"}) {
    EXPECT_THAT(told(url), testing::HasSubstr("connection to server at")) << url;
    EXPECT_THAT(told(url), testing::Not(testing::HasSubstr("special characters"))) << url;
  }
}

TEST(OpenDatabase, TakesUrlsOfFiles) {
  TempDir scratch;
  const std::string path = (scratch.path() / "a.db").string();
  store::open_database(fmt::format("sqlite:///{}?synchronous=full", path))
      ->execute("CREATE TABLE x (a TEXT)");
  EXPECT_TRUE(std::filesystem::exists(path));
  write_file_atomically(path + "2",
                        "this is not a database, but long enough to look at it closely");
  EXPECT_EQ(code_of([&] { store::open_database(path + "2"); }), ErrorCode::corruption);
}

TEST(OpenDatabase, ManyMayOpenANewFileAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const TempDir scratch;
    const std::string path = (scratch.path() / "new.db").string();
    std::atomic<int> opened{0};
    std::vector<std::thread> threads;
    std::latch together(4);
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        together.arrive_and_wait();
        try {
          store::open_database(path)->execute("CREATE TABLE IF NOT EXISTS x (a TEXT)");
          ++opened;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(opened, 4);
  }
}

}  // namespace
}  // namespace kolo::test

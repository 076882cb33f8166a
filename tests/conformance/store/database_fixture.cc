#include "conformance/store/database_fixture.h"

namespace kolo::test {
namespace {

/// Started by the first test that needs it, stopped at the end of the program.
class ServerEnvironment : public testing::Environment {
 public:
  void TearDown() override { server_.reset(); }
  PostgresServer* get() {
    if (!tried_) server_ = PostgresServer::start_new();
    tried_ = true;
    return server_.get();
  }

 private:
  bool tried_ = false;
  std::unique_ptr<PostgresServer> server_;
};

ServerEnvironment* const kServer =
    static_cast<ServerEnvironment*>(testing::AddGlobalTestEnvironment(new ServerEnvironment));

}  // namespace

void DatabaseTest::SetUp() {
  if (GetParam() == "postgresql") {
    if (kServer->get() == nullptr) GTEST_SKIP() << "PostgreSQL is not installed here";
    url_ = kServer->get()->url();
    connect()->execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  } else {
    url_ = (scratch_.path() / "test.db").string();
  }
  database_ = connect();
}

std::unique_ptr<store::Database> DatabaseTest::connect(std::chrono::milliseconds patience) const {
  return store::open_database(url_, {.create = true, .patience = patience});
}

PostgresServer* DatabaseTest::server() {
  return GetParam() == "postgresql" ? kServer->get() : nullptr;
}

std::vector<std::string> all_stores() {
  std::vector<std::string> names;
  for (const auto& entry : store::stores()) names.emplace_back(entry.name);
  return names;
}

}  // namespace kolo::test

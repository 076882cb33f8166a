// One suite over every kind of database.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/files.h"
#include "conformance/store/postgres_server.h"
#include "store/database.h"

namespace kolo::test {

/// Parametrised by the name of a store; each test gets an empty database.
class DatabaseTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;

  /// A further connection.
  [[nodiscard]] std::unique_ptr<store::Database> connect(
      std::chrono::milliseconds patience = std::chrono::seconds(5)) const;
  [[nodiscard]] const std::string& url() const { return url_; }
  /// Null unless this is PostgreSQL.
  static PostgresServer* server();

  std::unique_ptr<store::Database> database_;

 private:
  TempDir scratch_;
  std::string url_;
};

/// For INSTANTIATE_TEST_SUITE_P.
std::vector<std::string> all_stores();

}  // namespace kolo::test

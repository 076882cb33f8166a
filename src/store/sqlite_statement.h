// Prepared statements of SQLite, and its errors as kolo::Error.
#pragma once

#include <sqlite3.h>

#include <string>

#include "store/database.h"

namespace kolo::store {

/// Throws for a result code; `doing` says what was tried, `name` is the file.
[[noreturn]] void throw_sqlite(sqlite3* handle, int code, std::string_view doing,
                               const std::string& name);

class SqliteStatement final : public Statement {
 public:
  /// Throws invalid_argument unless the parameters are $1, $2 … in the order of their first use.
  SqliteStatement(sqlite3* handle, std::string_view sql, const std::string& name);
  ~SqliteStatement() override { ::sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  using Statement::bind;
  Statement& bind(int parameter, std::int64_t value) override;
  Statement& bind(int parameter, double value) override;
  Statement& bind_null(int parameter) override;
  std::int64_t run() override;
  bool next() override;
  void reset() override;
  [[nodiscard]] bool is_null(int column) const override;
  [[nodiscard]] std::int64_t integer(int column) const override;
  [[nodiscard]] double number(int column) const override;
  [[nodiscard]] std::string_view text(int column) const override;

  void clear();

 private:
  Statement& bind_text(int parameter, std::string_view value) override;
  void check(int code, std::string_view doing);
  int step();

  sqlite3* handle_;
  sqlite3_stmt* statement_ = nullptr;
  const std::string& name_;
};

}  // namespace kolo::store

// A statement is reset after its last row and after every error, so that it never holds a read
// transaction open. Codes of SQLite become codes of kolo by what the caller can do: what may pass
// (locks, a full disk) is `unavailable`, a violated constraint is `already_exists`.
#include "store/sqlite_statement.h"

#include <cmath>

#include "base/errors.h"
#include "store/statement_words.h"

namespace kolo::store {

void throw_sqlite(sqlite3* handle, int code, std::string_view doing, const std::string& name) {
  ErrorCode kind = ErrorCode::io;
  std::string_view advice;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      kind = ErrorCode::unavailable;
      advice = "; another process writes to it";
      break;
    case SQLITE_FULL:
      kind = ErrorCode::unavailable;
      advice = "; free some space";
      break;
    case SQLITE_CANTOPEN:
      kind = ErrorCode::unavailable;
      advice = "; does its directory exist, and may it be written to?";
      break;
    case SQLITE_READONLY: advice = "; it may only be read"; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: kind = ErrorCode::corruption; break;
    case SQLITE_CONSTRAINT: kind = ErrorCode::already_exists; break;
    case SQLITE_ERROR:
    case SQLITE_RANGE:
    case SQLITE_MISUSE: kind = ErrorCode::invalid_argument; break;
    default: break;
  }
  const char* why = handle != nullptr ? ::sqlite3_errmsg(handle) : ::sqlite3_errstr(code);
  throw_error(kind, "{}: {}: {}{}", name, doing, why, advice);
}

SqliteStatement::SqliteStatement(sqlite3* handle, std::string_view sql, const std::string& name)
    : handle_(handle), name_(name) {
  const int code = ::sqlite3_prepare_v3(handle, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) throw_sqlite(handle, code, words_of_failed(sql, name), name);
  // "$2" is a name to SQLite and a number to PostgreSQL; used in order they are the same.
  for (int i = 1; i <= ::sqlite3_bind_parameter_count(statement_); ++i) {
    const char* written = ::sqlite3_bind_parameter_name(statement_, i);
    if (written != nullptr && fmt::format("${}", i) == written) continue;
    ::sqlite3_finalize(statement_);
    throw_error(ErrorCode::invalid_argument, "'{}': parameter {} must be written ${}", sql, i, i);
  }
}

void SqliteStatement::check(int code, std::string_view doing) {
  if (code == SQLITE_OK) return;
  throw_sqlite(handle_, code, doing, name_);
}

Statement& SqliteStatement::bind(int parameter, std::int64_t value) {
  check(::sqlite3_bind_int64(statement_, parameter, value), "binding");
  return *this;
}
Statement& SqliteStatement::bind(int parameter, double value) {
  if (!std::isfinite(value))
    throw_error(ErrorCode::invalid_argument, "the value of parameter ${} is not a finite number",
                parameter);
  check(::sqlite3_bind_double(statement_, parameter, value), "binding");
  return *this;
}
Statement& SqliteStatement::bind_text(int parameter, std::string_view value) {
  check(::sqlite3_bind_text(statement_, parameter, value.data() != nullptr ? value.data() : "",
                            static_cast<int>(value.size()), SQLITE_TRANSIENT),
        "binding");
  return *this;
}
Statement& SqliteStatement::bind_null(int parameter) {
  check(::sqlite3_bind_null(statement_, parameter), "binding");
  return *this;
}

int SqliteStatement::step() {
  const int code = ::sqlite3_step(statement_);
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code;
  const int extended = ::sqlite3_extended_errcode(handle_);
  const std::string doing = words_of_failed(::sqlite3_sql(statement_), name_);
  try {
    throw_sqlite(handle_, extended, doing, name_);
  } catch (...) {
    ::sqlite3_reset(statement_);
    throw;
  }
}

std::int64_t SqliteStatement::run() {
  while (step() == SQLITE_ROW) {
  }
  ::sqlite3_reset(statement_);
  return ::sqlite3_changes64(handle_);
}

bool SqliteStatement::next() {
  if (step() == SQLITE_ROW) return true;
  ::sqlite3_reset(statement_);
  return false;
}

void SqliteStatement::reset() { ::sqlite3_reset(statement_); }

void SqliteStatement::clear() {
  ::sqlite3_reset(statement_);
  ::sqlite3_clear_bindings(statement_);
}

bool SqliteStatement::is_null(int column) const {
  return ::sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t SqliteStatement::integer(int column) const {
  return ::sqlite3_column_int64(statement_, column);
}
double SqliteStatement::number(int column) const {
  return ::sqlite3_column_double(statement_, column);
}
std::string_view SqliteStatement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(::sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
}

}  // namespace kolo::store

// The interface to a database: SQLite in a file, or PostgreSQL by URL.
//
//   auto database = open_database("study.db");
//   Transaction change(*database);
//   database->prepare("INSERT INTO t (a, b) VALUES ($1, $2)").bind(1, 7).bind(2, "x").run();
//   change.commit();
//
// SQL is the common part of both dialects: BIGINT, DOUBLE PRECISION, TEXT; parameters are written
// $1, $2 … in the order of their first use; ON CONFLICT … DO; RETURNING. What differs is
// behind this interface and checked by one conformance suite over both.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "store/row_writer.h"

namespace kolo::store {

/// A prepared statement in use. Cheap to get again: the database keeps what was prepared.
///
/// Columns and parameters are null, whole numbers, numbers (finite ones; others are refused) or
/// text.
class Statement {
 public:
  virtual ~Statement() = default;

  /// Parameters count from 1, as in the SQL.
  virtual Statement& bind(int parameter, std::int64_t value) = 0;
  virtual Statement& bind(int parameter, double value) = 0;
  /// Bytes that are not UTF-8, and zero bytes, are stored as U+FFFD: what programs print may hold
  /// them, and PostgreSQL would refuse the row.
  Statement& bind(int parameter, std::string_view value) {
    return is_plain_utf8(value) ? bind_text(parameter, value)
                                : bind_text(parameter, plain_utf8(value));
  }
  virtual Statement& bind_null(int parameter) = 0;
  Statement& bind(int parameter, int value) { return bind(parameter, std::int64_t{value}); }
  Statement& bind(int parameter, const std::string& value) {
    return bind(parameter, std::string_view(value));
  }
  Statement& bind(int parameter, const char* value) {
    return bind(parameter, std::string_view(value));
  }
  template <class T>
  Statement& bind(int parameter, const std::optional<T>& value) {
    return value ? bind(parameter, *value) : bind_null(parameter);
  }

  /// For statements that give no rows: how many rows were changed. Parameters stay bound.
  virtual std::int64_t run() = 0;
  /// The next row; false after the last one, and then from the beginning again.
  virtual bool next() = 0;
  /// Forgets the rows that are left.
  virtual void reset() = 0;

  // Of the row, columns from 0.
  [[nodiscard]] virtual bool is_null(int column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(int column) const = 0;
  [[nodiscard]] virtual double number(int column) const = 0;
  /// Valid until the next call of next(), run() or reset().
  [[nodiscard]] virtual std::string_view text(int column) const = 0;

 protected:
  virtual Statement& bind_text(int parameter, std::string_view value) = 0;
};

/// Waits for Database::notify() of any process.
class Watch {
 public:
  virtual ~Watch() = default;
  /// True if there was a notification since the last call that gave true (or since the watch was
  /// made); false at the deadline.
  virtual bool wait(Deadline deadline) = 0;
  /// From any thread: a wait that is under way, and all later ones, return false at once.
  void cancel() noexcept;

 protected:
  Watch();
  /// Readable when cancelled.
  [[nodiscard]] int cancelled_fd() const noexcept { return cancelled_.get(); }
  [[nodiscard]] bool cancelled() const noexcept;

 private:
  Fd cancelled_;
};

/// Whom a writing transaction excludes.
enum class Locking {
  all,   ///< every other one, from its begin on
  rows,  ///< those that change the same rows, where the database can; for compare-and-set
};

/// A connection. One thread at a time; make several for several threads.
///
/// Errors: unavailable (busy, unreachable, or the disk is full: trying again may help), io
/// (read-only, I/O error), already_exists (a key that is there), corruption, invalid_argument (SQL
/// or bindings; a defect of the caller). After an error inside a transaction it is rolled back.
class Database {
 public:
  virtual ~Database() = default;

  /// The statement, with nothing bound. Valid as long as the database; one use of a text at a time.
  virtual Statement& prepare(std::string_view sql) = 0;
  /// Several statements without parameters, separated by ";".
  virtual void execute(std::string_view sql) = 0;
  /// Inside a transaction: a writer of new rows with these columns.
  virtual std::unique_ptr<RowWriter> insert_rows(
      std::string_view table, std::initializer_list<std::string_view> columns) = 0;

  /// Writing transactions exclude each other as `locking` says. See Transaction.
  virtual void begin(Locking locking = Locking::all) = 0;
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;
  /// What was committed survives a power failure when this returns, whatever the URL says: before
  /// something is done elsewhere that must not be done without it.
  virtual void flush() = 0;
  [[nodiscard]] virtual bool in_transaction() const noexcept = 0;

  /// Wakes the watches of this channel (a word), in this process and others; not inside a
  /// transaction.
  virtual void notify(std::string_view channel) = 0;
  virtual std::unique_ptr<Watch> watch(std::string_view channel) = 0;

  /// Seconds since 1970 by the clock of the server; without one, of this machine.
  [[nodiscard]] virtual double date() = 0;
  /// "sqlite" or "postgresql".
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
  /// For messages: the file, or the URL without its password.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
};

/// Begins; rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database, Locking locking = Locking::all) : database_(database) {
    database_.begin(locking);
  }
  ~Transaction() {
    if (!done_) database_.rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() {
    database_.commit();
    done_ = true;
  }

 private:
  Database& database_;
  bool done_ = false;
};

struct OpenOptions {
  bool create = true;  ///< a file that is not there; otherwise not_found
  /// How long a writer waits for another one, and a server for its answer.
  std::chrono::milliseconds patience{5000};
};

/// A path or sqlite:///path?synchronous=full (default normal: a committed transaction survives
/// every end of the processes; `full` makes it survive a power failure too), or
/// postgresql://user@host/database. Throws as Database does, and invalid_argument for other URLs.
std::unique_ptr<Database> open_database(const std::string& url, OpenOptions options = {});

/// A URL as it may be shown.
std::string without_password(const std::string& url);

struct StoreInfo {
  std::string_view name;
  std::string_view summary;
};
/// For `kolo list stores`.
std::vector<StoreInfo> stores();

}  // namespace kolo::store

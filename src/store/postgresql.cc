// Statements are prepared on first use, once per connection; after a reconnect (a new generation of
// the connection) they are prepared again. Values travel as text. Outside of a transaction a lost
// connection is replaced silently; inside of one it is an error, as what was written is gone.
//
// All writers take one advisory lock at the beginning of a transaction, unless they ask for row
// locks. That makes transactions of kolo serial, as SQLite's are, so that the same code is correct
// on both. Watches use LISTEN and NOTIFY on a connection of their own.
#include "store/postgresql.h"

#include <poll.h>

#include <charconv>
#include <cmath>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/errors.h"
#include "store/postgresql_connection.h"
#include "store/postgresql_copy.h"

namespace kolo::store {
namespace {

/// All writers of kolo take this lock first: "kolo" in ASCII.
constexpr int kWriterLock = 0x6b6f6c6f;

std::string channel_name(std::string_view channel) { return fmt::format("kolo_{}", channel); }

/// Rows are fetched whole: the tables' own order of magnitude is what a process holds anyway.
class PgStatement final : public Statement {
 public:
  PgStatement(PgConnection& connection, const bool& in_transaction, std::string sql,
              unsigned number)
      : connection_(connection),
        in_transaction_(in_transaction),
        sql_(std::move(sql)),
        name_(fmt::format("s{}", number)) {}

  using Statement::bind;
  Statement& bind(int parameter, std::int64_t value) override {
    return set(parameter, std::to_string(value));
  }
  Statement& bind(int parameter, double value) override {
    if (!std::isfinite(value))
      throw_error(ErrorCode::invalid_argument, "the value of parameter ${} is not a finite number",
                  parameter);
    return set(parameter, fmt::format("{}", value));
  }
  Statement& bind_null(int parameter) override { return set(parameter, std::nullopt); }

  std::int64_t run() override {
    fetch();
    const char* changed = libpq().cmd_tuples(result_.get());
    const std::int64_t count = *changed != '\0' ? std::stoll(changed) : 0;
    result_.reset();
    return count;
  }

  bool next() override {
    if (!result_) {
      fetch();
      row_ = -1;
    }
    if (++row_ < libpq().ntuples(result_.get())) return true;
    result_.reset();
    return false;
  }
  void reset() override { result_.reset(); }

  [[nodiscard]] bool is_null(int column) const override {
    return libpq().getisnull(result_.get(), row_, column) != 0;
  }
  [[nodiscard]] std::int64_t integer(int column) const override {
    return parsed<std::int64_t>(column);
  }
  [[nodiscard]] double number(int column) const override { return parsed<double>(column); }
  [[nodiscard]] std::string_view text(int column) const override {
    return {libpq().getvalue(result_.get(), row_, column),
            static_cast<std::size_t>(libpq().getlength(result_.get(), row_, column))};
  }

  void clear() {
    result_.reset();
    values_.clear();
  }

 private:
  Statement& bind_text(int parameter, std::string_view value) override {
    return set(parameter, std::string(value));
  }
  Statement& set(int parameter, std::optional<std::string> value) {
    const auto place = static_cast<std::size_t>(parameter);
    if (values_.size() < place) values_.resize(place);
    values_[place - 1] = std::move(value);
    return *this;
  }

  template <class T>
  [[nodiscard]] T parsed(int column) const {
    T value{};
    const std::string_view digits = text(column);
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  void fetch() {
    // Inside a transaction a lost connection is an error; the caller begins again.
    if (!in_transaction_) connection_.ensure();
    if (prepared_on_ != connection_.generation()) {
      const int sent =
          libpq().send_prepare(connection_.handle(), name_.c_str(), sql_.c_str(), 0, nullptr);
      connection_.checked(connection_.answer(sent), sql_);
      prepared_on_ = connection_.generation();
    }
    std::vector<const char*> texts;
    for (const auto& value : values_) texts.push_back(value ? value->c_str() : nullptr);
    const int sent = libpq().send_query_prepared(connection_.handle(), name_.c_str(),
                                                 static_cast<int>(texts.size()), texts.data(),
                                                 nullptr, nullptr, 0);
    result_ = connection_.checked(connection_.answer(sent), sql_);
  }

  PgConnection& connection_;
  const bool& in_transaction_;
  std::string sql_, name_;
  unsigned prepared_on_ = 0;
  std::vector<std::optional<std::string>> values_;
  PgResult result_;
  int row_ = -1;
};

class PgWatch final : public Watch {
 public:
  PgWatch(const std::string& url, std::string_view channel, std::chrono::milliseconds patience)
      : connection_(url, patience), channel_(channel_name(channel)) {
    listen();
  }

  bool wait(Deadline deadline) override {
    for (;;) {
      if (!connection_.alive()) return wait_for_the_server(deadline);
      if (libpq().consume_input(connection_.handle()) == 0) continue;  // lost
      bool any = false;
      while (PGnotify* note = libpq().notifies(connection_.handle())) {
        libpq().freemem(note);
        any = true;
      }
      if (any) return true;
      if (deadline.passed() || cancelled()) return false;
      pollfd events[] = {{cancelled_fd(), POLLIN, 0},
                         {libpq().socket(connection_.handle()), POLLIN, 0}};
      ::poll(events, 2, deadline.poll_timeout_ms());
    }
  }

 private:
  void listen() { connection_.execute("LISTEN " + channel_); }

  /// What was said while nobody listened is lost: a new connection counts as a notification.
  bool wait_for_the_server(Deadline deadline) {
    try {
      connection_.ensure();
      listen();
      return true;
    } catch (const Error&) {
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::milliseconds(200)));
      return false;
    }
  }

  PgConnection connection_;
  std::string channel_;
};

class PgDatabase final : public Database {
 public:
  PgDatabase(std::string url, const OpenOptions& options)
      : url_(std::move(url)), patience_(options.patience), connection_(url_, options.patience) {}

  Statement& prepare(std::string_view sql) override {
    auto& statement = statements_[std::string(sql)];
    if (!statement)
      statement = std::make_unique<PgStatement>(connection_, in_transaction_, std::string(sql),
                                                static_cast<unsigned>(statements_.size()));
    statement->clear();
    return *statement;
  }

  void execute(std::string_view sql) override {
    if (!in_transaction_) connection_.ensure();
    connection_.execute(std::string(sql));
  }

  std::unique_ptr<RowWriter> insert_rows(std::string_view table,
                                         std::initializer_list<std::string_view> columns) override {
    return std::make_unique<PgCopy>(connection_, table, std::span(columns.begin(), columns.size()));
  }

  void begin(Locking locking) override {
    if (in_transaction_)
      throw_error(ErrorCode::failed_precondition, "{}: a transaction is already open", name());
    connection_.ensure();
    try {
      connection_.execute(
          locking == Locking::rows
              ? "BEGIN"
              : fmt::format("BEGIN; SELECT pg_advisory_xact_lock({})", kWriterLock));
    } catch (const Error&) {
      rollback();
      throw;
    }
    in_transaction_ = true;
  }
  void commit() override {
    // A commit whose answer is lost is unknown; begin() then meets a new connection, and the keys
    // of what was written tell whether it is there.
    connection_.execute("COMMIT");
    in_transaction_ = false;
  }
  void rollback() noexcept override {
    in_transaction_ = false;
    try {
      if (connection_.alive()) connection_.execute("ROLLBACK");
    } catch (const Error&) {
      // Without a connection there is nothing left of the transaction either.
    }
  }
  /// The server flushes before it answers a commit, unless its administrator has settled otherwise.
  void flush() override {}
  [[nodiscard]] bool in_transaction() const noexcept override { return in_transaction_; }

  void notify(std::string_view channel) override {
    prepare("SELECT pg_notify($1, '')").bind(1, channel_name(channel)).run();
  }
  std::unique_ptr<Watch> watch(std::string_view channel) override {
    return std::make_unique<PgWatch>(url_, channel, patience_);
  }

  [[nodiscard]] double date() override {
    auto& row = prepare("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)");
    row.next();
    const double date = row.number(0);
    row.reset();
    return date;
  }
  [[nodiscard]] std::string_view kind() const noexcept override { return "postgresql"; }
  [[nodiscard]] const std::string& name() const noexcept override { return connection_.name(); }

 private:
  std::string url_;
  std::chrono::milliseconds patience_;
  PgConnection connection_;
  bool in_transaction_ = false;
  std::unordered_map<std::string, std::unique_ptr<PgStatement>> statements_;
};

}  // namespace

std::unique_ptr<Database> open_postgresql(const std::string& url, const OpenOptions& options) {
  return std::make_unique<PgDatabase>(url, options);
}

}  // namespace kolo::store

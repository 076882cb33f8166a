// Every transaction begins with BEGIN IMMEDIATE: writers queue up at the beginning instead of
// failing in the middle. SQLite has no notifications between processes, so a channel is a file
// beside the database: notify() appends a byte to it, and a watch waits for inotify events on it
// and looks at its size twice a second in case there are none.
#include "store/sqlite.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "store/sqlite_rows.h"
#include "store/sqlite_statement.h"
#include "store/statement_words.h"

namespace kolo::store {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Transparent, so that a statement is found without copying its text.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// A new database is for its owner alone: it holds what users give to jobs and trials, passwords
/// among it. SQLite gives the files beside it the same mode.
void create_private(const fs::path& path) {
  const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
}

/// A file for notifications, which whoever may write the database may write.
Fd open_beside(const fs::path& database, const fs::path& file) {
  struct stat status {};
  const mode_t mode = ::stat(database.c_str(), &status) == 0 ? status.st_mode & 0666 : kPrivateFile;
  Fd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, mode));
  if (!made.valid()) return Fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ::fchmod(made.get(), mode);  // whatever the umask
  return made;
}

/// A notification is a touch of the file NAME-CHANNEL.notify beside the database.
class SqliteWatch final : public Watch {
 public:
  SqliteWatch(const fs::path& database, fs::path file) : file_(std::move(file)) {
    const Fd there_now = open_beside(database, file_);
    seen_ = stamp();
    inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (inotify_.valid() &&
        ::inotify_add_watch(inotify_.get(), file_.c_str(), IN_ATTRIB | IN_MODIFY) < 0)
      inotify_.reset();
  }

  bool wait(Deadline deadline) override {
    for (;;) {
      const auto now = stamp();
      if (now != seen_) {
        seen_ = now;
        return true;
      }
      if (deadline.passed() || cancelled()) return false;
      // Events may be missing (other file systems, no more watches): look now and then anyway.
      const auto slice = std::min<std::chrono::nanoseconds>(deadline.left(), kLook);
      pollfd events[] = {{cancelled_fd(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
      if (::poll(events, 2, Deadline::after(slice).poll_timeout_ms()) > 0) {
        char buffer[4096];
        while (::read(inotify_.get(), buffer, sizeof buffer) > 0) {
        }
      }
    }
  }

 private:
  static constexpr std::chrono::nanoseconds kLook = 500ms;

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> stamp() const {
    struct stat status {};
    if (::stat(file_.c_str(), &status) != 0) return {};
    return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec};
  }

  fs::path file_;
  std::pair<std::int64_t, std::int64_t> seen_;
  Fd inotify_;
};

/// The file may only be read, no file can be made beside it, and nobody has it open: its log, which
/// every reader of a WAL database needs otherwise, is neither there nor can it be.
bool is_sealed(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return ::access(path.c_str(), R_OK) == 0 && ::access(path.c_str(), W_OK) != 0 &&
         ::access(folder.c_str(), W_OK) != 0 && !fs::exists(path.string() + "-wal");
}

std::string immutable_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : path.string())
    if (c == '?' || c == '#' || c == '%')
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      uri += c;
  return uri + "?immutable=1";
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(fs::path path, bool full, const OpenOptions& options)
      : name_(path.string()), is_flushed_(full), patience_(options.patience) {
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (options.create ? SQLITE_OPEN_CREATE : 0);
    if (!options.create && !fs::exists(path))
      throw_error(ErrorCode::not_found, "the database {} does not exist", name_);
    if (options.create) create_private(path);
    const bool sealed = is_sealed(path);
    const int code =
        sealed ? ::sqlite3_open_v2(immutable_uri(path).c_str(), &handle_,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
                                   nullptr)
               : ::sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
    if (code != SQLITE_OK) fail_to_open(code);
    ::sqlite3_extended_result_codes(handle_, 1);
    ::sqlite3_busy_handler(handle_, &wait_for_others, this);
    if (sealed) return;
    try {
      use_write_ahead_log(Deadline::after(options.patience));
      execute(full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
      // A few megabytes of history stay in memory; the log is folded in every 4,000 pages.
      execute("PRAGMA cache_size=-16000; PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY");
    } catch (...) {
      ::sqlite3_close_v2(handle_);
      throw;
    }
  }
  ~SqliteDatabase() override {
    statements_.clear();
    ::sqlite3_close_v2(handle_);
  }
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  Statement& prepare(std::string_view sql) override {
    auto found = statements_.find(sql);
    if (found == statements_.end())
      found = statements_
                  .emplace(std::string(sql), std::make_unique<SqliteStatement>(handle_, sql, name_))
                  .first;
    found->second->clear();
    return *found->second;
  }

  void execute(std::string_view sql) override {
    const std::string text(sql);
    if (const int code = ::sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr);
        code != SQLITE_OK)
      throw_sqlite(handle_, ::sqlite3_extended_errcode(handle_), words_of_failed(sql, name_),
                   name_);
  }

  std::unique_ptr<RowWriter> insert_rows(std::string_view table,
                                         std::initializer_list<std::string_view> columns) override {
    return make_sqlite_rows(*this, table, columns);
  }

  void begin(Locking /*locking*/) override {
    if (in_transaction())
      throw_error(ErrorCode::failed_precondition, "{}: a transaction is already open", name_);
    prepare("BEGIN IMMEDIATE").run();
  }
  void commit() override { prepare("COMMIT").run(); }
  void rollback() noexcept override {
    if (in_transaction()) ::sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void flush() override {
    // What is not in the log any more was flushed when it was folded in.
    if (!is_flushed_) sync_to_disk(name_ + "-wal");
  }
  [[nodiscard]] bool in_transaction() const noexcept override {
    return ::sqlite3_get_autocommit(handle_) == 0;
  }

  void notify(std::string_view channel) override {
    // One byte more each time: two notifications within the clock's grain differ as well.
    const Fd file = open_beside(name_, notify_file(channel));
    if (!file.valid() || ::write(file.get(), ".", 1) != 1)
      throw_errno("cannot notify through {}", notify_file(channel).string());
  }
  std::unique_ptr<Watch> watch(std::string_view channel) override {
    return std::make_unique<SqliteWatch>(name_, notify_file(channel));
  }

  [[nodiscard]] double date() override { return system_clock().date(); }
  [[nodiscard]] std::string_view kind() const noexcept override { return "sqlite"; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

 private:
  /// SQLite calls it while another process holds the lock it needs; 0 = no longer. A program that
  /// was told to end waits for a moment only.
  static int wait_for_others(void* self, int calls) {
    auto& database = *static_cast<SqliteDatabase*>(self);
    const auto now = Deadline::Clock::now();
    if (calls == 0) database.waits_since_ = now;
    const auto patience = is_interrupted() ? std::min<std::chrono::milliseconds>(
                                                 database.patience_, kPatienceWhenInterrupted)
                                           : database.patience_;
    if (now - database.waits_since_ >= patience) return 0;
    std::this_thread::sleep_for(calls < 10 ? 1ms : calls < 20 ? 5ms : 20ms);
    return 1;
  }

  /// SQLite does not wait where two want to change to it at the same moment.
  void use_write_ahead_log(Deadline deadline) {
    for (;;) {
      try {
        execute("PRAGMA journal_mode=WAL");
        return;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unavailable || deadline.passed()) throw;
        std::this_thread::sleep_for(1ms);
      }
    }
  }

  [[noreturn]] void fail_to_open(int code) {
    try {
      throw_sqlite(handle_, code, "opening the database", name_);
    } catch (...) {
      ::sqlite3_close_v2(handle_);
      throw;
    }
  }
  [[nodiscard]] fs::path notify_file(std::string_view channel) const {
    return fmt::format("{}-{}.notify", name_, channel);
  }

  std::string name_;
  bool is_flushed_;  // each commit by itself
  sqlite3* handle_ = nullptr;
  std::chrono::milliseconds patience_;
  Deadline::Clock::time_point waits_since_{};
  std::unordered_map<std::string, std::unique_ptr<SqliteStatement>, TextHash, std::equal_to<>>
      statements_;
};

}  // namespace

std::unique_ptr<Database> open_sqlite(const std::string& url, const OpenOptions& options) {
  std::string path = url;
  bool full = false;
  if (constexpr std::string_view kScheme = "sqlite://"; path.starts_with(kScheme)) {
    path.erase(0, kScheme.size());
    // Three slashes: relative to here, as others have it; four: absolute.
    if (path.starts_with("/")) path.erase(0, 1);
    if (const auto question = path.find('?'); question != std::string::npos) {
      const std::string setting = path.substr(question + 1);
      path.erase(question);
      if (setting != "synchronous=full" && setting != "synchronous=normal")
        throw_error(ErrorCode::invalid_argument,
                    "{}: the setting '{}' is unknown; known: synchronous=full, synchronous=normal",
                    url, setting);
      full = setting == "synchronous=full";
    }
  }
  if (path.empty())
    throw_error(ErrorCode::invalid_argument,
                "{}: the name of the file is missing; write sqlite:///FILE, or sqlite:////FILE for "
                "an absolute path",
                url);
  return std::make_unique<SqliteDatabase>(path, full, options);
}

}  // namespace kolo::store

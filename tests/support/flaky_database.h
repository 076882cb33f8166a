// A database whose answers get lost when a test says so.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <utility>

#include "kolo/error.h"
#include "store/database.h"

namespace kolo::test {

/// The process that used the database was killed. No error, so that nobody mends it.
struct Crash {};

/// Hears nothing. The end of a real one takes the kernel milliseconds, more than all the rest of a
/// simulated session.
class DeafWatch final : public store::Watch {
 public:
  bool wait(Deadline deadline) override {
    pollfd cancel{cancelled_fd(), POLLIN, 0};
    ::poll(&cancel, 1, deadline.poll_timeout_ms());
    return false;
  }
};

class FlakyDatabase final : public store::Database {
 public:
  explicit FlakyDatabase(std::unique_ptr<store::Database> inner) : inner_(std::move(inner)) {}

  /// While true, nothing is answered.
  bool down = false;
  /// How it fails: a server that is away (unavailable), a disk that is full or broken (io).
  ErrorCode failure = ErrorCode::unavailable;
  /// Called around each commit: `has_happened` says on which side of it. May throw Crash.
  std::function<void(bool has_happened)> around_commit{};
  /// Nobody is told of notifications.
  bool is_deaf = false;
  /// A defect for tests of simulations: commits are answered, and nothing is written.
  bool lies = false;
  /// The so-many-th commit from now takes place, and its answer is lost; 0 = none.
  int lost_commit = 0;
  /// The so-many-th commit from now does not take place; 0 = none.
  int refused_commit = 0;

  store::Statement& prepare(std::string_view sql) override {
    answer();
    return inner_->prepare(sql);
  }
  void execute(std::string_view sql) override {
    answer();
    inner_->execute(sql);
  }
  std::unique_ptr<store::RowWriter> insert_rows(
      std::string_view table, std::initializer_list<std::string_view> columns) override {
    answer();
    return inner_->insert_rows(table, columns);
  }
  void begin(store::Locking locking) override {
    answer();
    inner_->begin(locking);
  }
  void commit() override {
    answer();
    if (around_commit) around_commit(false);
    if (refused_commit > 0 && --refused_commit == 0) fail();
    if (lies)
      inner_->rollback();
    else
      inner_->commit();
    if (around_commit) around_commit(true);
    if (lost_commit > 0 && --lost_commit == 0) fail();
  }
  void rollback() noexcept override {
    if (inner_->in_transaction()) inner_->rollback();
  }
  void flush() override {
    answer();
    inner_->flush();
  }
  [[nodiscard]] bool in_transaction() const noexcept override { return inner_->in_transaction(); }
  void notify(std::string_view channel) override { inner_->notify(channel); }
  std::unique_ptr<store::Watch> watch(std::string_view channel) override {
    if (is_deaf) return std::make_unique<DeafWatch>();
    return inner_->watch(channel);
  }
  [[nodiscard]] double date() override {
    answer();
    return inner_->date();
  }
  [[nodiscard]] std::string_view kind() const noexcept override { return inner_->kind(); }
  [[nodiscard]] const std::string& name() const noexcept override { return inner_->name(); }

 private:
  [[noreturn]] void fail() const {
    throw Error(failure, failure == ErrorCode::io ? "the disk is full" : "the server went away");
  }
  void answer() const {
    if (down) fail();
  }

  std::unique_ptr<store::Database> inner_;
};

}  // namespace kolo::test

// A connection to a PostgreSQL server, its results, and its errors as kolo::Error.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "store/libpq.h"

namespace kolo::store {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { libpq().clear(result); }
};
using PgResult = std::unique_ptr<PGresult, ClearResult>;

class PgConnection {
 public:
  /// Throws unavailable.
  PgConnection(std::string url, std::chrono::milliseconds patience);
  ~PgConnection() { libpq().finish(handle_); }
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  [[nodiscard]] PGconn* handle() const noexcept { return handle_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool alive() const noexcept {
    return handle_ != nullptr && libpq().status(handle_) == CONNECTION_OK;
  }
  /// Grows with each connection made: what was prepared on an earlier one is gone.
  [[nodiscard]] unsigned generation() const noexcept { return generation_; }

  /// Connects again if the connection was lost. Throws unavailable.
  void ensure();
  /// Statements without parameters.
  PgResult execute(const std::string& sql);

  // What libpq's own functions would wait for without an end.
  /// The last answer to what was sent; `sent` is what the function that sent it gave back. Null if
  /// the connection was lost. Throws unavailable, and gives the connection up, if the server is
  /// silent for too long.
  PGresult* answer(int sent);
  /// Until the server has taken what is on its way to it.
  void flush();
  /// Throws unless the result is a good one; `sql` led to it.
  PgResult checked(PGresult* result, std::string_view sql);

 private:
  void connect();
  void abandon() noexcept;
  /// Until the socket is ready for any of `events`. A program that was told to end waits for a
  /// moment only. False if it was in vain.
  [[nodiscard]] bool wait(short events, Deadline& deadline) const;
  [[noreturn]] void give_up(std::string_view doing);
  [[nodiscard]] Deadline answer_deadline() const;

  std::string url_, name_;
  std::chrono::milliseconds patience_;
  PGconn* handle_ = nullptr;
  unsigned generation_ = 0;
};

}  // namespace kolo::store

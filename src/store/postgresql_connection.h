// A connection to a PostgreSQL server, its results, and its errors as kolo::Error.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

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
  [[nodiscard]] bool alive() const noexcept { return libpq().status(handle_) == CONNECTION_OK; }
  /// Grows with each connection made: what was prepared on an earlier one is gone.
  [[nodiscard]] unsigned generation() const noexcept { return generation_; }

  /// Connects again if the connection was lost. Throws unavailable.
  void ensure();
  /// Statements without parameters.
  PgResult execute(const std::string& sql);
  /// Throws unless the result is a good one.
  PgResult checked(PGresult* result, std::string_view doing);

 private:
  void connect();

  std::string url_, name_;
  std::chrono::milliseconds patience_;
  PGconn* handle_ = nullptr;
  unsigned generation_ = 0;
};

}  // namespace kolo::store

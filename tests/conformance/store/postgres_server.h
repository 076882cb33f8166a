// A real PostgreSQL server on a unix socket in a directory of its own, for the time of a test.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace kolo::test {

class PostgresServer {
 public:
  /// Null where PostgreSQL is not installed. It refuses to run as root: then as user postgres.
  static std::unique_ptr<PostgresServer> start_new();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  [[nodiscard]] std::string url() const;
  void start();
  void stop();
  /// As if the machine had been switched off.
  void crash();

 private:
  PostgresServer() = default;
  void run(const std::string& command) const;

  std::filesystem::path programs_, directory_;
};

}  // namespace kolo::test

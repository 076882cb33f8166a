// A real PostgreSQL server on a unix socket in a directory of its own, for the time of a test.
#pragma once

#include <signal.h>

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

  /// Of the administrator, who needs no password.
  [[nodiscard]] std::string url() const;
  /// Makes a user who must prove a password (SCRAM), with an empty database of the same name.
  void add_user(const std::string& user, const std::string& password);
  /// `login` is that user, or USER:PASSWORD with the password percent-encoded.
  [[nodiscard]] std::string url_of(const std::string& login) const;
  void start();
  void stop();
  /// As if the machine had been switched off.
  void crash();
  /// As if its machine hung: connections stay open, and nothing is answered until thaw().
  void freeze() const { signal_all(SIGSTOP); }
  void thaw() const { signal_all(SIGCONT); }

 private:
  PostgresServer() = default;
  void run(const std::string& command) const;
  void signal_all(int signal) const;

  std::filesystem::path programs_, directory_;
};

}  // namespace kolo::test

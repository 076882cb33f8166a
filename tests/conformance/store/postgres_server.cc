#include "conformance/store/postgres_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/errors.h"
#include "base/subprocess.h"
#include "store/database.h"

namespace kolo::test {
namespace fs = std::filesystem;

namespace {

fs::path newest_programs() {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none))
    if (fs::exists(version.path() / "bin/initdb")) found.push_back(version.path() / "bin");
  return found.empty() ? fs::path() : *std::max_element(found.begin(), found.end());
}

}  // namespace

std::unique_ptr<PostgresServer> PostgresServer::start_new() {
  const fs::path programs = newest_programs();
  if (programs.empty()) return nullptr;
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->programs_ = programs;
  std::string directory = (fs::temp_directory_path() / "kolo-pg.XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) throw_errno("cannot make {}", directory);
  server->directory_ = directory;
  if (::geteuid() == 0)
    run_command({"chown", "postgres", directory}, Deadline::after(std::chrono::seconds(5)));
  server->run(fmt::format("{}/initdb -D {}/data -A trust -U app --no-sync -E UTF8 --locale=C.UTF-8",
                          programs.string(), directory));
  std::ofstream(server->directory_ / "data/postgresql.conf", std::ios::app)
      << "listen_addresses = ''\nunix_socket_directories = '" << directory
      << "'\nfsync = off\nfull_page_writes = off\n"
         "shared_buffers = 16MB\nmax_connections = 20\npassword_encryption = 'scram-sha-256'\n";
  std::ofstream(server->directory_ / "data/pg_hba.conf")
      << "local all app trust\nlocal all all scram-sha-256\n";
  server->start();
  return server;
}

PostgresServer::~PostgresServer() {
  try {
    stop();
  } catch (const std::exception&) {
    // It may be stopped already.
  }
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

std::string PostgresServer::url() const {
  return fmt::format("postgresql:///postgres?host={}&user=app", directory_.string());
}

void PostgresServer::add_user(const std::string& user, const std::string& password) {
  const auto admin = store::open_database(url());
  admin->execute("DROP DATABASE IF EXISTS " + user);
  admin->execute("DROP ROLE IF EXISTS " + user);
  admin->execute(fmt::format("CREATE ROLE {} LOGIN PASSWORD '{}'", user, password));
  admin->execute(fmt::format("CREATE DATABASE {0} OWNER {0}", user));
}

std::string PostgresServer::url_of(const std::string& login) const {
  return fmt::format("postgresql://{}@/{}?host={}", login, login.substr(0, login.find(':')),
                     directory_.string());
}

void PostgresServer::start() {
  run(fmt::format("{}/pg_ctl -D {}/data -l {}/log -w start >/dev/null", programs_.string(),
                  directory_.string(), directory_.string()));
}

void PostgresServer::stop() {
  run(fmt::format("{}/pg_ctl -D {}/data -m fast -w stop >/dev/null", programs_.string(),
                  directory_.string()));
}

void PostgresServer::crash() {
  run(fmt::format("{}/pg_ctl -D {}/data -m immediate -w stop >/dev/null", programs_.string(),
                  directory_.string()));
}

void PostgresServer::signal_all(int signal) const {
  pid_t server = 0;
  std::ifstream(directory_ / "data/postmaster.pid") >> server;
  if (server <= 0) throw_error(ErrorCode::internal, "the server does not run");
  ::kill(server, signal);
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", server));
  for (pid_t child = 0; children >> child;) ::kill(child, signal);
}

void PostgresServer::run(const std::string& command) const {
  std::vector<std::string> argv{"sh", "-c", "cd " + directory_.string() + " && " + command};
  if (::geteuid() == 0) argv.insert(argv.begin(), {"runuser", "-u", "postgres", "--"});
  const auto result = run_command(argv, Deadline::after(std::chrono::seconds(30)));
  if (!result.ok())
    throw_error(ErrorCode::internal, "{}: {}{}", command, result.output, result.errors);
}

}  // namespace kolo::test

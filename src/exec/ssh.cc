#include "exec/ssh.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/words.h"

namespace kolo::exec {

std::string host_keys_setting() {
  const auto keys = environment("KOLO_SSH_HOST_KEYS").value_or("accept-new");
  if (keys != "accept-new" && keys != "yes" && keys != "no")
    throw_error(ErrorCode::invalid_argument,
                "KOLO_SSH_HOST_KEYS='{}' is unknown; known: accept-new (trust a host whose key is "
                "new), yes (only hosts in known_hosts), no",
                keys);
  return keys;
}

std::chrono::milliseconds host_lease_setting() {
  constexpr std::int64_t kSeconds = 60;
  return std::chrono::seconds(
      std::max<std::int64_t>(1, setting_integer("HOST_LEASE").value_or(kSeconds)));
}

SshOptions ssh_from_environment(const std::string& kolo) {
  SshOptions ssh;
  if (const auto command = environment("KOLO_SSH")) {
    std::istringstream words(*command);
    ssh.command.assign(std::istream_iterator<std::string>(words), {});
    if (ssh.command.empty())
      throw_error(ErrorCode::invalid_argument,
                  "KOLO_SSH is empty; set it to the command that runs ssh, or unset it");
  }
  if (const auto port = setting_integer("SSH_PORT")) ssh.port = static_cast<int>(*port);
  ssh.identity_file = environment("KOLO_SSH_IDENTITY_FILE").value_or("");
  ssh.host_keys = host_keys_setting();
  ssh.remote_kolo =
      environment("KOLO_REMOTE_KOLO").value_or(environment("KOLO_REMOTE_BINARY").value_or(kolo));
  return ssh;
}

std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host) {
  return ssh_command(options, host,
                     fmt::format("exec {} custodian", shell_quoted(options.remote_kolo)));
}

std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host,
                                     const std::string& line) {
  std::vector<std::string> argv = options.command;
  for (const std::string& setting :
       {std::string("BatchMode=yes"), "StrictHostKeyChecking=" + options.host_keys,
        std::string("LogLevel=ERROR"), std::string("ServerAliveInterval=5"),
        std::string("ServerAliveCountMax=3"),
        fmt::format("ConnectTimeout={}", options.connect_timeout_seconds)}) {
    argv.push_back("-o");
    argv.push_back(setting);
  }
  argv.insert(argv.end(), {"-T", "-x"});
  if (options.port) argv.insert(argv.end(), {"-p", std::to_string(*options.port)});
  if (!options.identity_file.empty()) argv.insert(argv.end(), {"-i", options.identity_file});
  argv.insert(argv.end(), {"--", host, line});
  return argv;
}

}  // namespace kolo::exec

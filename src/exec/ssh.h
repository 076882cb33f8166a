// How `kolo` is run on another host.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::exec {

struct SshOptions {
  std::vector<std::string> command = {"ssh"};  ///< the program and first arguments
  std::optional<int> port;
  std::string identity_file;
  std::string remote_kolo;               ///< path of `kolo` on the other host
  std::string host_keys = "accept-new";  ///< ssh's StrictHostKeyChecking
  int connect_timeout_seconds = 30;
};

/// KOLO_SSH_HOST_KEYS: which host keys ssh takes. Throws invalid_argument.
std::string host_keys_setting();

/// KOLO_HOST_LEASE: how long another host goes on without hearing from the owner of its tasks.
std::chrono::milliseconds host_lease_setting();

/// KOLO_SSH, KOLO_SSH_PORT, KOLO_SSH_IDENTITY_FILE, KOLO_SSH_HOST_KEYS and KOLO_REMOTE_KOLO (or
/// KOLO_REMOTE_BINARY, its other name), for launchers without options of their own. `kolo` is where
/// the program is unless the last of them says it.
SshOptions ssh_from_environment(const std::string& kolo);

/// The complete ssh command that has the shell of `host` run `line`.
std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host,
                                     const std::string& line);
/// The same for a custodian. The only part a shell sees (the other side's) is the path of kolo,
/// quoted.
std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host);

}  // namespace kolo::exec

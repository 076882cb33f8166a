// What a user writes about a cluster: which hosts it has, how to reach them, and what to prepare
// there. The keys are those of Ray's cluster files where they mean the same.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "exec/ledger.h"
#include "exec/protocol.h"
#include "launch/batch/batch_system.h"

namespace kolo::cluster {

/// What a host offers; 0 slots = one for each of its processors.
using Offer = exec::Amounts;

struct SshAccess {
  std::string user{};           ///< "" = as ssh is configured
  std::string identity_file{};  ///< "" = as ssh is configured
  int port = 0;                 ///< 0 = as ssh is configured
  /// A command that has a shell of {host} run a line, which follows it; "" = ssh.
  std::string shell{};
};

/// The user's own commands that make machines and take them away.
struct MachineCommands {
  std::string create;  ///< prints the hosts, one per line, the head first
  std::string remove{};
  std::filesystem::path directory{};  ///< where they run
};

struct ClusterFile {
  std::string name;
  std::filesystem::path path{};  ///< where it was read
  /// Names or addresses without a user, the head first. Empty if they are not known before they
  /// are asked for.
  std::vector<std::string> hosts{};
  /// Nodes of this batch system; 0 nodes = those of the allocation that `kolo up` runs in.
  std::string batch_system{};
  launch::BatchRequest batch{};
  std::optional<MachineCommands> machines{};
  /// So many must stand, or `kolo up` has failed; nothing = all.
  std::optional<int> min_workers{};
  std::optional<int> max_workers{};
  Offer offer{};
  std::map<std::string, Offer> host_offers{};
  SshAccess ssh{};
  std::string kolo{};  ///< path of the program `kolo` on the hosts; "" = as here
  std::vector<std::string> initialization_commands{}, setup_commands{};
  std::vector<std::string> head_setup_commands{}, worker_setup_commands{};
  std::map<std::string, std::string> file_mounts{};  ///< path on the hosts -> path here
  std::chrono::milliseconds idle_time{0};            ///< 0 = stays until `kolo down`
  std::chrono::seconds keep_alive = exec::kUsualKeepAlive;

  [[nodiscard]] const Offer& offer_of(const std::string& host) const;
};

/// Throws invalid_argument naming the key, with the key that may be meant.
ClusterFile parse_cluster_file(const Json& json, const std::string& origin);
/// For commands that need no file that it names.
std::string name_in_cluster_file(const std::filesystem::path& path);
/// Paths in it are relative to the file.
ClusterFile load_cluster_file(const std::filesystem::path& path);

/// Letters, digits, '-', '_' and '.': it is the name of a folder. Throws invalid_argument.
void check_cluster_name(std::string_view name);

}  // namespace kolo::cluster

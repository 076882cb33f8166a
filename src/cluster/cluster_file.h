// What a user writes about a cluster: which hosts it has, how to reach them, and what to prepare
// there. The keys are those of Ray's cluster files where they mean the same.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "exec/ledger.h"

namespace kolo::cluster {

/// What a host offers; 0 slots = one for each of its processors.
using Offer = exec::Amounts;

struct HostSpec {
  std::string host;  ///< name or address, without a user
  Offer offer{};

  bool operator==(const HostSpec&) const = default;
};

struct SshAccess {
  std::string user{};           ///< "" = as ssh is configured
  std::string identity_file{};  ///< "" = as ssh is configured
  int port = 0;                 ///< 0 = as ssh is configured
};

struct ClusterFile {
  std::string name;
  std::vector<HostSpec> hosts{};  ///< the head first
  int min_workers = 0;            ///< so many must stand, or `kolo up` has failed
  SshAccess ssh{};
  std::string kolo{};  ///< path of the program `kolo` on the hosts; "" = as here
  std::vector<std::string> initialization_commands{}, setup_commands{};
  std::vector<std::string> head_setup_commands{}, worker_setup_commands{};
  std::map<std::string, std::string> file_mounts{};  ///< path on the hosts -> path here
  std::chrono::minutes idle_time{0};                 ///< 0 = stays until `kolo down`
};

/// Throws invalid_argument naming the key, with the key that may be meant.
ClusterFile parse_cluster_file(const Json& json, const std::string& origin);
/// Paths in it are relative to the file.
ClusterFile load_cluster_file(const std::filesystem::path& path);

/// Letters, digits, '-', '_' and '.': it is the name of a folder. Throws invalid_argument.
void check_cluster_name(std::string_view name);

}  // namespace kolo::cluster

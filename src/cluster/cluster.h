// A cluster as it stands: its key, its members, and where their custodians listen. It is kept in a
// folder of the user's, $XDG_STATE_HOME/kolo/clusters/NAME; nobody else can enter it.
//
// There is no head daemon: whoever has the folder speaks with each member itself, and each member
// keeps its own ledger. The head is the member that `kolo attach` and `kolo exec` go to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/secret.h"
#include "base/socket.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {

struct Member {
  std::string host;  ///< as in the file
  bool is_head = false;
  /// Where its custodian listens; nothing while it is being started, or if it could not be.
  std::optional<SocketAddress> address{};
};

struct Cluster {
  std::string name;
  Secret key = Secret::random();
  SshAccess ssh{};
  std::string kolo{};
  std::vector<Member> members{};  ///< the head first

  [[nodiscard]] Member* find(const std::string& host);
  /// Throws not_found, listing the hosts.
  [[nodiscard]] const Member& at(const std::string& host) const;
  [[nodiscard]] const Member& head() const { return members.front(); }
};

/// The folder that holds all clusters.
std::filesystem::path clusters_folder();
std::vector<std::string> cluster_names();
/// Throws not_found, naming the known ones.
Cluster load_cluster(const std::string& name);
std::optional<Cluster> find_cluster(const std::string& name);
/// "" = the only one there is. Throws not_found, or invalid_argument if there are several.
std::string cluster_name_or_only(const std::string& name);
void save_cluster(const Cluster& cluster);
void forget_cluster(const std::string& name);

/// One command at a time changes a cluster. Throws unavailable if another one does.
Fd lock_cluster(const std::string& name);

}  // namespace kolo::cluster

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

/// The job of a batch system that has the nodes of a cluster.
struct BatchJob {
  std::string system;
  std::string id{};  ///< "" = it is being submitted
  /// Tells the job of the last `kolo up` from earlier ones.
  std::string ticket;
};

struct Cluster {
  std::string name;
  Secret key = Secret::random();
  SshAccess ssh{};
  std::string kolo{};
  /// Who has not answered for so long is lost.
  std::chrono::seconds keep_alive = exec::kUsualKeepAlive;
  std::optional<BatchJob> job{};
  std::optional<MachineCommands> machines{};
  std::vector<Member> members{};  ///< the head first; none while a batch job waits

  [[nodiscard]] Member* find(const std::string& host);
  /// Throws not_found, listing the hosts.
  [[nodiscard]] const Member& at(const std::string& host) const;
  /// Throws unavailable if there are no members yet.
  [[nodiscard]] const Member& head() const;
};

/// The folder that holds all clusters, and that of one of them.
std::filesystem::path clusters_folder();
std::filesystem::path folder_of_cluster(const std::string& name);
std::vector<std::string> cluster_names();
/// Throws not_found, naming the known ones.
Cluster load_cluster(const std::string& name);
std::optional<Cluster> find_cluster(const std::string& name);
/// "" = the only one there is. Throws not_found, or invalid_argument if there are several.
std::string cluster_name_or_only(const std::string& name);
void save_cluster(const Cluster& cluster);
void forget_cluster(const std::string& name);

/// One command at a time changes a cluster.
class ClusterLock {
 public:
  /// Throws unavailable if another command changes it.
  explicit ClusterLock(const std::string& name);
  /// Nothing is left of a cluster that was forgotten.
  ~ClusterLock();
  ClusterLock(const ClusterLock&) = delete;
  ClusterLock& operator=(const ClusterLock&) = delete;

 private:
  std::string name_;
  std::filesystem::path path_;
  Fd file_;
};

}  // namespace kolo::cluster

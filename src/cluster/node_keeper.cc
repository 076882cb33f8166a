#include "cluster/node_keeper.h"

#include <poll.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "exec/link.h"
#include "launch/allocation.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr auto kStartTime = 60s;
/// Between looks whether the cluster still wants its nodes.
constexpr auto kLook = 2s;

fs::path kept_nodes_file(const std::string& cluster) {
  return folder_of_cluster(cluster) / "nodes.json";
}

void write_kept_nodes(const std::string& cluster, const std::string& ticket,
                      const KeptNodes& kept) {
  Json nodes = Json::array();
  for (const auto& node : kept.nodes)
    nodes.push_back({{"host", node.host}, {"address", node.address}, {"error", node.error}});
  write_file_atomically(
      kept_nodes_file(cluster),
      json_text({{"ticket", ticket}, {"nodes", std::move(nodes)}, {"error", kept.error}}) + "\n",
      kPrivateFile);
}

/// A file system that does not answer says nothing about the cluster.
bool is_wanted(const std::string& cluster, const std::string& ticket) {
  try {
    const auto found = find_cluster(cluster);
    return found && found->job && found->job->ticket == ticket;
  } catch (const Error&) {
    return true;
  }
}

class NodeKeeper {
 public:
  NodeKeeper(const Cluster& cluster, const ClusterFile& file,
             const launch::Allocation& allocation) {
    const std::string kolo = fs::read_symlink("/proc/self/exe");
    for (const auto& host : allocation.hosts) {
      Node& node = nodes_.emplace_back(Node{{host.name}});
      try {
        const auto command = launch::custodian_command(allocation.system, host.name, kolo);
        node.link = command.empty() ? exec::Link::to_this_machine()
                                    : exec::Link::through(command, host.name);
        node.order = {cluster.key, file.offer_of(host.name), file.idle_time, file.keep_alive};
      } catch (const Error& error) {
        node.kept.error = error.message();
      }
    }
  }

  KeptNodes wait_until_they_listen() {
    const Deadline deadline = Deadline::after(kStartTime);
    const auto is_known = [](const Node& node) {
      return !node.kept.address.empty() || !node.kept.error.empty();
    };
    while (!std::all_of(nodes_.begin(), nodes_.end(), is_known) && !deadline.passed())
      wait(deadline);
    KeptNodes kept;
    for (auto& node : nodes_) {
      if (!is_known(node)) node.kept.error = "kolo does not answer there";
      kept.nodes.push_back(node.kept);
    }
    return kept;
  }

  [[nodiscard]] bool has_any() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return !!node.link; });
  }

  /// For something to happen, at most until the deadline.
  void wait(Deadline deadline) {
    std::vector<pollfd> polls;
    for (const auto& node : nodes_) {
      polls.push_back({node.link ? node.link->read_fd() : -1, POLLIN, 0});
      polls.push_back({node.link ? node.link->error_fd() : -1, POLLIN, 0});
      polls.push_back({node.link ? node.link->write_fd() : -1, POLLOUT, 0});
    }
    if (::poll(polls.data(), polls.size(), deadline.poll_timeout_ms()) <= 0) return;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      if (polls[3 * i + 2].revents != 0) node.link->flush();
      if (polls[3 * i + 1].revents != 0) node.link->read_errors();
      if (polls[3 * i].revents != 0) receive(node);
    }
  }

 private:
  struct Node {
    KeptNodes::Node kept;
    std::unique_ptr<exec::Link> link{};  // unset when it has ended
    exec::ListenOrder order{};
  };

  static void receive(Node& node) {
    try {
      for (const auto& event : node.link->receive()) {
        if (std::holds_alternative<exec::Hello>(event)) node.link->listen(node.order);
        if (const auto* listening = std::get_if<exec::Listening>(&event)) {
          node.kept.address = listening->address;
          node.kept.error = listening->error;
        }
      }
      if (!node.link->closed()) return;
      if (node.kept.address.empty() && node.kept.error.empty())
        node.kept.error = node.link->reason_of_end();
    } catch (const Error& error) {
      node.kept.error = error.message();
      node.link->kill_command();
    }
    node.link.reset();
  }

  std::vector<Node> nodes_;
};

}  // namespace

fs::path kept_cluster_file(const std::string& cluster) {
  return folder_of_cluster(cluster) / "cluster.yaml";
}

std::optional<KeptNodes> read_kept_nodes(const std::string& cluster, const std::string& ticket) {
  const fs::path file = kept_nodes_file(cluster);
  if (!fs::exists(file)) return std::nullopt;
  const Json json = parse_json(read_file(file), file.string());
  if (json_field<std::string>(json, "ticket", file.string()) != ticket) return std::nullopt;
  KeptNodes kept;
  kept.error = json_field<std::string>(json, "error", file.string());
  for (const auto& node : json.at("nodes"))
    kept.nodes.push_back({json_field<std::string>(node, "host", file.string()),
                          json_field<std::string>(node, "address", file.string()),
                          json_field<std::string>(node, "error", file.string())});
  return kept;
}

int keep_nodes(const std::string& name, const std::string& ticket) {
  if (!is_wanted(name, ticket)) return 0;
  const Cluster cluster = load_cluster(name);
  std::optional<launch::Allocation> allocation;
  try {
    allocation = launch::find_allocation();
    if (!allocation) throw_error(ErrorCode::unavailable, "it finds no allocation to be in");
  } catch (const Error& error) {
    write_kept_nodes(name, ticket, {{}, error.message()});
    return 1;
  }
  NodeKeeper keeper(cluster, load_cluster_file(kept_cluster_file(name)), *allocation);
  write_kept_nodes(name, ticket, keeper.wait_until_they_listen());
  while (keeper.has_any() && is_wanted(name, ticket)) keeper.wait(Deadline::after(kLook));
  return 0;
}

}  // namespace kolo::cluster

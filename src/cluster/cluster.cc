#include "cluster/cluster.h"

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/named_lock.h"
#include "base/registry.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kKeyFile = "key";
constexpr const char* kStateFile = "cluster.json";

std::vector<std::string_view> hosts_of(const Cluster& cluster) {
  std::vector<std::string_view> hosts;
  for (const auto& member : cluster.members) hosts.push_back(member.host);
  return hosts;
}

}  // namespace

Member* Cluster::find(const std::string& host) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.host == host; });
  return found == members.end() ? nullptr : &*found;
}

const Member& Cluster::at(const std::string& host) const {
  if (const Member* found = const_cast<Cluster*>(this)->find(host)) return *found;
  throw_unknown_name("host of the cluster", host, hosts_of(*this));
}

const Member& Cluster::head() const {
  if (members.empty())
    throw_error(ErrorCode::unavailable, "cluster {} has no hosts yet; `kolo up` waits for them",
                name);
  return members.front();
}

fs::path clusters_folder() { return state_folder() / "clusters"; }
fs::path folder_of_cluster(const std::string& name) { return clusters_folder() / name; }

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(clusters_folder(), none))
    if (fs::exists(entry.path() / kStateFile)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Cluster> find_cluster(const std::string& name) {
  check_cluster_name(name);
  const fs::path folder = folder_of_cluster(name);
  if (!fs::exists(folder / kStateFile)) return std::nullopt;
  const std::string where = folder / kStateFile;
  const Json json = parse_json(read_file(folder / kStateFile), where);
  Cluster cluster{.name = name, .key = Secret::from_bytes(read_file(folder / kKeyFile))};
  const Json& ssh = json.at("ssh");
  cluster.ssh = {json_field<std::string>(ssh, "user", where),
                 json_field<std::string>(ssh, "identity_file", where),
                 json_field<int>(ssh, "port", where), ssh.value("shell", "")};
  cluster.kolo = json_field<std::string>(json, "kolo", where);
  cluster.keep_alive = std::chrono::seconds(
      json.value("keep_alive", static_cast<std::int64_t>(exec::kUsualKeepAlive.count())));
  if (json.contains("job")) {
    const Json& job = json.at("job");
    cluster.job = {json_field<std::string>(job, "system", where),
                   json_field<std::string>(job, "id", where),
                   json_field<std::string>(job, "ticket", where)};
  }
  if (json.contains("machines")) {
    const Json& machines = json.at("machines");
    cluster.machines = {json_field<std::string>(machines, "create", where),
                        json_field<std::string>(machines, "delete", where),
                        json_field<std::string>(machines, "directory", where)};
  }
  for (const auto& entry : json.at("members")) {
    Member member{json_field<std::string>(entry, "host", where), cluster.members.empty()};
    const auto address = json_field<std::string>(entry, "address", where);
    if (!address.empty()) member.address = SocketAddress::parse(address);
    cluster.members.push_back(std::move(member));
  }
  return cluster;
}

Cluster load_cluster(const std::string& name) {
  if (auto found = find_cluster(name)) return *std::move(found);
  const auto names = cluster_names();
  if (names.empty())
    throw_error(ErrorCode::not_found, "there is no cluster '{}': `kolo up FILE` makes one", name);
  throw_unknown_name("cluster", name, {names.begin(), names.end()});
}

std::string cluster_name_or_only(const std::string& name) {
  if (!name.empty()) return name;
  const auto names = cluster_names();
  if (names.empty())
    throw_error(ErrorCode::not_found, "there is no cluster: `kolo up FILE` makes one");
  if (names.size() == 1) return names.front();
  std::string all;
  for (const auto& one : names) all += (all.empty() ? "" : ", ") + one;
  throw_error(ErrorCode::invalid_argument, "there are several clusters; name one of {}", all);
}

void save_cluster(const Cluster& cluster) {
  const fs::path folder = folder_of_cluster(cluster.name);
  make_private_directory(folder);
  Json json = {{"kolo", cluster.kolo},
               {"keep_alive", cluster.keep_alive.count()},
               {"ssh",
                {{"user", cluster.ssh.user},
                 {"identity_file", cluster.ssh.identity_file},
                 {"port", cluster.ssh.port},
                 {"shell", cluster.ssh.shell}}},
               {"members", Json::array()}};
  if (cluster.job)
    json["job"] = {
        {"system", cluster.job->system}, {"id", cluster.job->id}, {"ticket", cluster.job->ticket}};
  if (cluster.machines)
    json["machines"] = {{"create", cluster.machines->create},
                        {"delete", cluster.machines->remove},
                        {"directory", cluster.machines->directory.string()}};
  for (const auto& member : cluster.members)
    json["members"].push_back(
        {{"host", member.host}, {"address", member.address ? member.address->str() : ""}});
  // The key first: a cluster without it would be lost.
  write_file_atomically(folder / kKeyFile, cluster.key.bytes(), kPrivateFile);
  write_file_atomically(folder / kStateFile, json_text(json, 2) + "\n", kPrivateFile);
}

void forget_cluster(const std::string& name) {
  std::error_code error;
  fs::remove_all(folder_of_cluster(name), error);
  if (error)
    throw_error(ErrorCode::io, "cannot remove {}: {}", folder_of_cluster(name).string(),
                error.message());
}

ClusterLock::ClusterLock(const std::string& name)
    : name_(name), path_(clusters_folder() / ("." + name + ".lock")) {
  check_cluster_name(name);
  make_private_directory(clusters_folder());
  file_ = lock_named_file(path_);
  if (!file_.valid())
    throw_error(ErrorCode::unavailable, "another command changes cluster '{}' now; try again",
                name);
}

ClusterLock::~ClusterLock() {
  std::error_code none;
  if (!fs::exists(folder_of_cluster(name_) / kStateFile, none)) fs::remove(path_, none);
}

}  // namespace kolo::cluster

#include "cluster/cluster_file.h"

#include <algorithm>
#include <set>

#include "base/env.h"
#include "base/errors.h"
#include "base/registry.h"
#include "base/yaml.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

using Keys = std::vector<std::string_view>;

/// A map of the file, with the keys that it may have.
class Section {
 public:
  Section(const Json& json, std::string where, const Keys& known)
      : json_(json), where_(std::move(where)) {
    if (!json_.is_object())
      throw_error(ErrorCode::invalid_argument, "{}: must be a map of settings", where_);
    for (const auto& [key, value] : json_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw_error(ErrorCode::invalid_argument, "{}: {}", where_, unknown_name("key", key, known));
  }

  [[nodiscard]] bool has(const char* key) const {
    return json_.contains(key) && !json_.at(key).is_null();
  }
  [[nodiscard]] const Json& at(const char* key) const { return json_.at(key); }
  template <class T>
  void take(const char* key, T& into) const {
    if (has(key)) into = json_field<T>(json_, key, where_);
  }
  template <class T>
  [[nodiscard]] T need(const char* key) const {
    return json_field<T>(json_, key, where_);
  }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

/// "16GB" or a number of bytes.
double bytes_of(const Json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = try_parse_json(text.substr(0, text.size() - unit.size()));
    if (number && number->is_number()) return number->get<double>() * factor;
  }
  throw_error(ErrorCode::invalid_argument, "{}: memory must be bytes, or as in 16GB", where);
}

/// Every name that is not known counts as a resource of the user's own.
Offer offer_of(const Json& json, const std::string& where) {
  if (!json.is_object())
    throw_error(ErrorCode::invalid_argument, "{}: must be a map of names to amounts", where);
  Offer offer;
  for (const auto& [key, value] : json.items()) {
    if (key == "memory") {
      offer.named[key] = bytes_of(value, where);
      continue;
    }
    if (!value.is_number() || value.get<double>() < 0)
      throw_error(ErrorCode::invalid_argument, "{}: '{}' must be a number of 0 or more", where,
                  key);
    if (key == "slots" || key == "cpus" || key == "CPU")
      offer.slots = value.get<int>();
    else if (key == "gpus" || key == "GPU")
      offer.gpus = value.get<int>();
    else
      offer.named[key] = value.get<double>();
  }
  return offer;
}

void take_hosts(const Section& provider, const Section& all, ClusterFile& file) {
  const auto type = provider.has("type") ? provider.need<std::string>("type") : "hosts";
  if (type != "hosts" && type != "local")
    throw_error(ErrorCode::invalid_argument, "{}: {}", provider.where(),
                unknown_name("type", type, {"hosts", "local"}));
  file.hosts.push_back({provider.need<std::string>("head_ip")});
  std::vector<std::string> workers;
  provider.take("worker_ips", workers);
  int most = static_cast<int>(workers.size());
  all.take("max_workers", most);
  if (most < 0)
    throw_error(ErrorCode::invalid_argument, "{}: max_workers is negative", all.where());
  workers.resize(std::min(workers.size(), static_cast<std::size_t>(most)));
  for (auto& worker : workers) file.hosts.push_back({std::move(worker)});
  file.min_workers = static_cast<int>(workers.size());
  all.take("min_workers", file.min_workers);
  if (file.min_workers > static_cast<int>(workers.size()))
    throw_error(ErrorCode::invalid_argument, "{}: min_workers is {}, and there are {} workers",
                all.where(), file.min_workers, workers.size());
  std::set<std::string> seen;
  for (const auto& host : file.hosts)
    if (host.host.empty() || !seen.insert(host.host).second)
      throw_error(ErrorCode::invalid_argument, "{}: host '{}' is {}", provider.where(), host.host,
                  host.host.empty() ? "empty" : "named twice");
}

void take_offers(const Section& all, ClusterFile& file) {
  if (all.has("resources")) {
    const Offer offer = offer_of(all.at("resources"), all.where() + ": resources");
    for (auto& host : file.hosts) host.offer = offer;
  }
  if (!all.has("host_resources")) return;
  Keys names;
  for (const auto& host : file.hosts) names.push_back(host.host);
  const Section own(all.at("host_resources"), all.where() + ": host_resources", names);
  for (auto& host : file.hosts)
    if (own.has(host.host.c_str()))
      host.offer = offer_of(own.at(host.host.c_str()), own.where() + ": " + host.host);
}

std::string in_home(const std::string& path) {
  if (!path.starts_with("~/")) return path;
  return environment("HOME").value_or("") + path.substr(1);
}

}  // namespace

void check_cluster_name(std::string_view name) {
  const auto fits = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
           letter == '_' || letter == '.';
  };
  if (name.empty() || name.front() == '.' || name.size() > 64 ||
      !std::all_of(name.begin(), name.end(), fits))
    throw_error(ErrorCode::invalid_argument,
                "'{}' cannot be the name of a cluster; letters, digits, '-', '_' and '.' can",
                name);
}

ClusterFile parse_cluster_file(const Json& json, const std::string& origin) {
  const Section all(
      json, origin,
      {"cluster_name", "provider", "auth", "min_workers", "max_workers", "resources",
       "host_resources", "initialization_commands", "setup_commands", "head_setup_commands",
       "worker_setup_commands", "file_mounts", "idle_timeout_minutes", "kolo"});
  ClusterFile file{.name = all.need<std::string>("cluster_name")};
  check_cluster_name(file.name);
  if (!all.has("provider"))
    throw_error(ErrorCode::invalid_argument, "{}: the key 'provider' is missing", origin);
  take_hosts(Section(all.at("provider"), origin + ": provider", {"type", "head_ip", "worker_ips"}),
             all, file);
  take_offers(all, file);
  if (all.has("auth")) {
    const Section auth(all.at("auth"), origin + ": auth",
                       {"ssh_user", "ssh_private_key", "ssh_port"});
    auth.take("ssh_user", file.ssh.user);
    auth.take("ssh_private_key", file.ssh.identity_file);
    auth.take("ssh_port", file.ssh.port);
    file.ssh.identity_file = in_home(file.ssh.identity_file);
  }
  all.take("kolo", file.kolo);
  all.take("initialization_commands", file.initialization_commands);
  all.take("setup_commands", file.setup_commands);
  all.take("head_setup_commands", file.head_setup_commands);
  all.take("worker_setup_commands", file.worker_setup_commands);
  all.take("file_mounts", file.file_mounts);
  int minutes = 0;
  all.take("idle_timeout_minutes", minutes);
  file.idle_time = std::chrono::minutes(std::max(0, minutes));
  return file;
}

ClusterFile load_cluster_file(const fs::path& path) {
  ClusterFile file = parse_cluster_file(load_yaml(path), path.string());
  const fs::path folder = fs::absolute(path).parent_path();
  for (auto& [there, here] : file.file_mounts) {
    here = (folder / in_home(here)).lexically_normal();
    if (!fs::exists(here))
      throw_error(ErrorCode::not_found, "{}: file_mounts: {} does not exist", path.string(), here);
  }
  return file;
}

}  // namespace kolo::cluster

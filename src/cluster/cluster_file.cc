#include "cluster/cluster_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/env.h"
#include "base/errors.h"
#include "base/yaml.h"
#include "cluster/section.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

/// "16GB" or a number of bytes.
double bytes_of(const Json& value, const std::string& where) {
  if (value.is_number() && value.get<double>() >= 0) return value.get<double>();
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = try_parse_json(text.substr(0, text.size() - unit.size()));
    if (number && number->is_number() && number->get<double>() >= 0)
      return number->get<double>() * factor;
  }
  throw_error(ErrorCode::invalid_argument, "{}: memory must be bytes, or as in 16GB", where);
}

/// "slot", "GPUs" and the like are no resources of the user's own.
void refuse_other_spelling(const std::string& key, const std::string& where) {
  static constexpr std::pair<std::string_view, std::string_view> kMeant[] = {
      {"slot", "slots"}, {"cpu", "cpus"}, {"gpu", "gpus"}, {"memory", "memory"}, {"mem", "memory"}};
  std::string plain;
  for (const char letter : key)
    plain.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
  if (plain.ends_with('s')) plain.pop_back();
  for (const auto& [spelling, meant] : kMeant)
    if (plain == spelling)
      throw_error(ErrorCode::invalid_argument, "{}: key '{}' is unknown; did you mean '{}'?", where,
                  key, meant);
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
    const auto amount = value.get<double>();
    const bool is_slots = key == "slots" || key == "cpus" || key == "CPU";
    if (!is_slots && key != "gpus" && key != "GPU") {
      refuse_other_spelling(key, where);
      offer.named[key] = amount;
      continue;
    }
    if (amount != std::floor(amount))
      throw_error(ErrorCode::invalid_argument, "{}: '{}' must be a whole number", where, key);
    if (is_slots && amount == 0)
      throw_error(
          ErrorCode::invalid_argument,
          "{}: '{}' must be at least 1; for a host that is to run nothing, use `kolo drain`", where,
          key);
    if (amount > kMostAtOnce)
      throw_error(ErrorCode::invalid_argument, "{}: '{}' can be {} at most", where, key,
                  kMostAtOnce);
    (is_slots ? offer.slots : offer.gpus) = static_cast<int>(amount);
  }
  return offer;
}

void take_offers(const Section& all, ClusterFile& file) {
  if (all.has("resources")) file.offer = offer_of(all.at("resources"), all.where() + ": resources");
  if (!all.has("host_resources")) return;
  const std::string where = all.where() + ": host_resources";
  Keys names;
  for (const auto& host : file.hosts) names.push_back(host);
  const Json& own = all.at("host_resources");
  // Hosts that are not known yet cannot be told from a typo.
  if (!file.hosts.empty()) Section(own, where, names);
  for (const auto& [host, offer] : own.items())
    file.host_offers[host] = offer_of(offer, fmt::format("{}: {}", where, host));
}

std::string in_home(const std::string& path) {
  if (!path.starts_with("~/")) return path;
  return environment("HOME").value_or("") + path.substr(1);
}

}  // namespace

const Offer& ClusterFile::offer_of(const std::string& host) const {
  const auto found = host_offers.find(host);
  return found == host_offers.end() ? offer : found->second;
}

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
  const Section all(json, origin,
                    {"cluster_name", "provider", "auth", "min_workers", "max_workers", "resources",
                     "host_resources", "initialization_commands", "setup_commands",
                     "head_setup_commands", "worker_setup_commands", "file_mounts",
                     "idle_timeout_minutes", "keep_alive_seconds", "kolo"});
  ClusterFile file{.name = all.need<std::string>("cluster_name")};
  check_cluster_name(file.name);
  if (!all.has("provider"))
    throw_error(ErrorCode::invalid_argument, "{}: the key 'provider' is missing", origin);
  take_provider(all, file);
  take_offers(all, file);
  if (all.has("auth")) {
    const Section auth(all.at("auth"), origin + ": auth",
                       {"ssh_user", "ssh_private_key", "ssh_port"});
    auth.take("ssh_user", file.ssh.user);
    auth.take("ssh_private_key", file.ssh.identity_file);
    auth.take("ssh_port", file.ssh.port);
    if (auth.has("ssh_port") && (file.ssh.port < 1 || file.ssh.port > 65535))
      throw_error(ErrorCode::invalid_argument, "{}: ssh_port must be between 1 and 65535",
                  auth.where());
    file.ssh.identity_file = in_home(file.ssh.identity_file);
  }
  all.take("kolo", file.kolo);
  all.take("initialization_commands", file.initialization_commands);
  all.take("setup_commands", file.setup_commands);
  all.take("head_setup_commands", file.head_setup_commands);
  all.take("worker_setup_commands", file.worker_setup_commands);
  all.take("file_mounts", file.file_mounts);
  double minutes = 0;
  all.take("idle_timeout_minutes", minutes);
  if (minutes < 0)
    throw_error(ErrorCode::invalid_argument,
                "{}: idle_timeout_minutes must be a number of 0 or more; with 0 no host leaves",
                origin);
  constexpr double kLongest = 1e7;  // 19 years: whoever says more means for ever
  file.idle_time =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(minutes, 0., kLongest) * 6e4));
  if (all.has("keep_alive_seconds")) {
    file.keep_alive = std::chrono::seconds(all.need<int>("keep_alive_seconds"));
    if (file.keep_alive < std::chrono::seconds(1))
      throw_error(ErrorCode::invalid_argument, "{}: keep_alive_seconds must be at least 1", origin);
  }
  return file;
}

std::string name_in_cluster_file(const fs::path& path) {
  return parse_cluster_file(load_yaml(path), path.string()).name;
}

ClusterFile load_cluster_file(const fs::path& path) {
  ClusterFile file = parse_cluster_file(load_yaml(path), path.string());
  file.path = fs::absolute(path);
  const fs::path folder = file.path.parent_path();
  if (file.machines) file.machines->directory = folder;
  if (auto& key = file.ssh.identity_file; !key.empty()) {
    key = (folder / key).lexically_normal();
    // ssh would only say that it was not let in.
    if (file.batch_system.empty() && ::access(key.c_str(), R_OK) != 0)
      throw_errno("{}: auth: cannot read the ssh_private_key {}", path.string(), key);
  }
  for (auto& [there, here] : file.file_mounts) {
    here = (folder / in_home(here)).lexically_normal();
    if (!fs::exists(here))
      throw_error(ErrorCode::not_found, "{}: file_mounts: {} does not exist", path.string(), here);
  }
  return file;
}

}  // namespace kolo::cluster

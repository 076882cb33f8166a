// Where the hosts of a cluster come from: a list, a batch system, or commands of the user's.
#include <set>

#include "cluster/section.h"
#include "launch/batch/batch_system.h"

namespace kolo::cluster {
namespace {

void take_workers(const Section& all, const char* key, std::optional<int>& into) {
  if (!all.has(key)) return;
  into = all.need<int>(key);
  if (*into < 0 || *into > kMostAtOnce)
    throw_error(ErrorCode::invalid_argument, "{}: {} must be between 0 and {}", all.where(), key,
                kMostAtOnce);
}

void check_hosts(const Section& provider, const std::vector<std::string>& hosts) {
  std::set<std::string> seen;
  for (const auto& host : hosts)
    if (host.empty() || !seen.insert(host).second)
      throw_error(ErrorCode::invalid_argument, "{}: host '{}' is {}", provider.where(), host,
                  host.empty() ? "empty" : "named twice");
}

void take_hosts(const Section& provider, const Section& all, ClusterFile& file) {
  file.hosts.push_back(provider.need<std::string>("head_ip"));
  std::vector<std::string> workers;
  provider.take("worker_ips", workers);
  if (file.max_workers)
    workers.resize(std::min(workers.size(), static_cast<std::size_t>(*file.max_workers)));
  if (file.min_workers.value_or(0) > static_cast<int>(workers.size()))
    throw_error(ErrorCode::invalid_argument, "{}: min_workers is {}, and there are {} workers",
                all.where(), *file.min_workers, workers.size());
  for (auto& worker : workers) file.hosts.push_back(std::move(worker));
  check_hosts(provider, file.hosts);
}

/// Without a number of nodes they are those of the allocation that `kolo up` runs in.
void take_batch(const Section& provider, ClusterFile& file) {
  auto& request = file.batch;
  request.nodes = file.max_workers ? *file.max_workers + 1 : 0;
  provider.take("nodes", request.nodes);
  provider.take("time_minutes", request.minutes);
  provider.take("queue", request.queue);
  provider.take("project", request.project);
  provider.take("sched_flags", request.flags);
  if (request.nodes < 0 || request.minutes < 1)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' must be at least 1", provider.where(),
                request.nodes < 0 ? "nodes" : "time_minutes");
}

void take_commands(const Section& provider, ClusterFile& file) {
  file.machines.emplace();
  file.machines->create = provider.need<std::string>("create");
  provider.take("delete", file.machines->remove);
  provider.take("shell", file.ssh.shell);
  if (!file.ssh.shell.empty() && file.ssh.shell.find("{host}") == std::string::npos)
    throw_error(ErrorCode::invalid_argument, "{}: 'shell' must name the machine by {{host}}",
                provider.where());
}

Keys provider_types() {
  Keys types = launch::batch_systems().names();  // `local` is another name of `hosts` here
  types.insert(types.end(), {"hosts", "command"});
  return types;
}

}  // namespace

void take_provider(const Section& all, ClusterFile& file) {
  take_workers(all, "min_workers", file.min_workers);
  take_workers(all, "max_workers", file.max_workers);
  const Json& json = all.at("provider");
  const std::string where = all.where() + ": provider";
  std::string type = "hosts";
  if (json.is_object() && json.contains("type"))
    type = json_field<std::string>(json, "type", where);
  const Keys types = provider_types();
  if (std::find(types.begin(), types.end(), type) == types.end())
    throw_error(ErrorCode::invalid_argument, "{}: {}", where, unknown_name("type", type, types));
  if (type == "hosts" || type == "local") {
    take_hosts(Section(json, where, {"type", "head_ip", "worker_ips"}), all, file);
  } else if (type == "command") {
    take_commands(Section(json, where, {"type", "create", "delete", "shell"}), file);
  } else {
    file.batch_system = type;
    take_batch(
        Section(json, where, {"type", "nodes", "time_minutes", "queue", "project", "sched_flags"}),
        file);
    if (all.has("file_mounts"))
      throw_error(ErrorCode::invalid_argument,
                  "{}: file_mounts is for hosts that are reached by ssh; nodes of a batch system "
                  "share their files",
                  all.where());
  }
}

}  // namespace kolo::cluster

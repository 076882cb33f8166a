#include "cluster/bring_up.h"

#include <algorithm>
#include <thread>

#include "base/errors.h"
#include "base/mutex.h"
#include "cluster/batch_nodes.h"
#include "cluster/host_shell.h"
#include "cluster/host_start.h"
#include "cluster/machine_commands.h"
#include "cluster/members.h"
#include "cluster/standing.h"

namespace kolo::cluster {
namespace {

using namespace std::chrono_literals;

/// Its tasks have their grace time, and then some.
constexpr auto kEndTime = 30s;
/// For the user's command that takes machines away.
constexpr auto kDeleteTime = 15min;

/// `work(i)` for all i at once; hosts do not wait for each other.
void for_each_at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
}

/// Asks a custodian to end and waits until nothing of it is left.
void shut_down(LinkedMember& linked) {
  linked.link->shut_down();
  const Deadline deadline = Deadline::after(kEndTime);
  std::vector<LinkedMember> one;
  one.push_back(std::move(linked));
  while (!one.front().link->closed())
    if (!wait_for_any(one, deadline) && deadline.passed())
      throw_error(ErrorCode::timeout, "{}: its custodian does not end", one.front().member.host);
}

/// Finds a custodian whose start was interrupted before its address was known.
void find_lost(const Cluster& cluster, Member& member, std::chrono::milliseconds time) {
  StandingOrder order{.cluster = cluster.name, .key = cluster.key, .only_find = true};
  const HostShell shell(cluster.ssh, member.host, cluster.kolo);
  const auto answer = parse_standing_answer(
      shell.run_kolo("custodian standing", Deadline::after(time), encode(order)));
  if (!answer.address.empty()) member.address = SocketAddress::parse(answer.address);
}

/// Of a host without a custodian that answers: what is to be said when it is forgotten.
std::string farewell_to(const Cluster& cluster, Member member, const std::string& error) {
  try {
    member.address.reset();
    find_lost(cluster, member, answer_time(cluster));
    if (!member.address) return "is no longer in the file and had ended before";
  } catch (const Error&) {  // ssh finds nobody, either
  }
  return fmt::format(
      "is no longer in the file and does not answer ({}); if a process kolo-custodian still runs "
      "there, end it",
      error);
}

/// Hosts that are no longer in the file leave, now or when nobody uses them any more.
void remove_others(Cluster& cluster, const ClusterFile& file, const Tell& tell) {
  for (auto it = cluster.members.begin(); it != cluster.members.end();) {
    const bool stays =
        std::find(file.hosts.begin(), file.hosts.end(), it->host) != file.hosts.end();
    if (stays) {
      ++it;
      continue;
    }
    try {
      if (!it->address) find_lost(cluster, *it, answer_time(cluster));
      LinkedMember linked =
          link_one(cluster, *it, owner_name("kolo up"), Deadline::after(answer_time(cluster)));
      if (!linked.holdings.held.empty()) {
        linked.link->drain(true);
        tell({it->host,
              "is no longer in the file and takes nothing new; `kolo up` again ends it "
              "when nobody uses it any more"});
        ++it;
        continue;
      }
      shut_down(linked);
      tell({it->host, "is no longer in the file and has ended"});
    } catch (const Error& error) {
      tell({it->host, farewell_to(cluster, *it, error.message())});
    }
    it = cluster.members.erase(it);
  }
}

HostReport end_member(const Cluster& cluster, Member member, std::chrono::milliseconds time) {
  try {
    if (!member.address) find_lost(cluster, member, time);
    if (!member.address) return {member.host, "nothing stands there"};
    try {
      LinkedMember linked =
          link_one(cluster, member, owner_name("kolo down"), Deadline::after(time));
      shut_down(linked);
      return {member.host, "has ended"};
    } catch (const Error& error) {
      // Killed, or the host was started anew: then ssh says that nothing is left there.
      member.address.reset();
      find_lost(cluster, member, time);
      if (!member.address) return {member.host, "had ended before"};
      throw_error(error.code(), "{}", error.message());
    }
  } catch (const Error& error) {
    return {member.host, error.message(), /*is_failure=*/true};
  }
}

/// A node of a batch job: what does not answer ends with the job.
HostReport end_node(const Cluster& cluster, const Member& member, std::chrono::milliseconds time) {
  try {
    LinkedMember linked = link_one(cluster, member, owner_name("kolo down"), Deadline::after(time));
    shut_down(linked);
    return {member.host, "has ended"};
  } catch (const Error&) {
    return {member.host, "does not answer; its job is ended"};
  }
}

using Start = std::function<HostReport(std::size_t, Member&)>;

/// Starts the first `count` members at once, and notes where they listen. Whether the head and as
/// many workers as are needed stand.
bool start_all(Cluster& cluster, std::size_t count, std::optional<int> min_workers,
               const Start& start, const Tell& tell) {
  Mutex mutex;
  std::vector<bool> stands(count);
  std::vector<Member> members = cluster.members;
  for_each_at_once(count, [&](std::size_t i) {
    Member member = cluster.members[i];
    HostReport report{member.host, "", true};
    try {
      report = start(i, member);
    } catch (const Error& error) {
      report.what = error.message();
    }
    const MutexLock hold(mutex);
    members[i] = member;
    stands[i] = !report.is_failure;
    tell(report);
  });
  // Two names of one machine would promise its slots twice.
  for (std::size_t i = count; i-- > 1;) {
    const auto place = members.begin() + static_cast<std::ptrdiff_t>(i);
    const auto other = std::find_if(members.begin(), place, [&](const Member& one) {
      return one.address && place->address && one.address->str() == place->address->str();
    });
    if (other == place) continue;
    tell({place->host, fmt::format("is the same machine as {}; name it once", other->host),
          /*is_failure=*/true});
    stands[i] = false;
    members.erase(place);
  }
  cluster.members = std::move(members);
  save_cluster(cluster);
  const auto workers = std::count(stands.begin() + 1, stands.end(), true);
  return stands.front() && workers >= min_workers.value_or(static_cast<int>(count) - 1);
}

bool bring_up_nodes(const ClusterFile& file, Cluster& cluster, const UpOptions& options,
                    const Tell& tell) {
  const KeptNodes kept = take_nodes(file, cluster, tell);
  std::vector<Member> members;
  for (const auto& node : kept.nodes) {
    const Member* known = cluster.find(node.host);
    members.push_back({node.host, members.empty(),
                       known != nullptr ? known->address : std::optional<SocketAddress>()});
  }
  cluster.members = std::move(members);
  return start_all(
      cluster, kept.nodes.size(), file.min_workers,
      [&](std::size_t i, Member& member) {
        return start_on_node(file, cluster, options, kept.nodes[i], member);
      },
      tell);
}

bool bring_up_hosts(const ClusterFile& file, Cluster& cluster, const UpOptions& options,
                    const Tell& tell) {
  remove_others(cluster, file, tell);
  std::vector<Member> members;
  for (const auto& host : file.hosts) {
    const Member* known = cluster.find(host);
    members.push_back({host, members.empty(),
                       known != nullptr ? known->address : std::optional<SocketAddress>()});
  }
  for (const auto& member : cluster.members)  // drained ones
    if (std::none_of(members.begin(), members.end(),
                     [&](const Member& other) { return other.host == member.host; }))
      members.push_back(member);
  cluster.members = std::move(members);
  save_cluster(cluster);
  return start_all(
      cluster, file.hosts.size(), file.min_workers,
      [&](std::size_t, Member& member) { return start_on_host(file, cluster, options, member); },
      tell);
}

void refuse_another_provider(const ClusterFile& file, const Cluster& cluster) {
  const bool is_known = cluster.job || cluster.machines || !cluster.members.empty();
  if (is_known && (cluster.job.has_value() != !file.batch_system.empty() ||
                   cluster.machines.has_value() != file.machines.has_value()))
    throw_error(ErrorCode::failed_precondition,
                "cluster {} has hosts of another provider; `kolo down {}` ends it first", file.name,
                file.name);
}

}  // namespace

bool bring_up(const ClusterFile& file, const UpOptions& options, const Tell& tell) {
  const ClusterLock lock(file.name);
  Cluster cluster = find_cluster(file.name).value_or(Cluster{.name = file.name});
  refuse_another_provider(file, cluster);
  cluster.ssh = file.ssh;
  cluster.kolo = file.kolo;
  cluster.keep_alive = file.keep_alive;
  if (!file.batch_system.empty()) return bring_up_nodes(file, cluster, options, tell);
  if (!file.machines) return bring_up_hosts(file, cluster, options, tell);
  cluster.machines = file.machines;
  save_cluster(cluster);  // from now on what is made can be taken away
  ClusterFile made = file;
  made.hosts = create_machines(file, Deadline::after(options.setup_time));
  return bring_up_hosts(made, cluster, options, tell);
}

bool bring_down(const std::string& name, bool force, std::chrono::milliseconds time,
                const Tell& tell) {
  (void)load_cluster(name);
  const ClusterLock lock(name);
  const Cluster cluster = load_cluster(name);
  Mutex mutex;
  bool all_ended = true;
  const auto note = [&](const HostReport& report) {
    const MutexLock hold(mutex);
    all_ended = all_ended && !report.is_failure;
    tell(report);
  };
  for_each_at_once(cluster.members.size(), [&](std::size_t i) {
    const Member& member = cluster.members[i];
    note(cluster.job ? end_node(cluster, member, time) : end_member(cluster, member, time));
  });
  try {
    if (cluster.job) give_nodes_back(cluster, Deadline::after(time + kEndTime));
    if (cluster.machines && (all_ended || force))
      delete_machines(name, *cluster.machines, Deadline::after(kDeleteTime));
  } catch (const Error& error) {
    note({name, error.message(), /*is_failure=*/true});
  }
  if (all_ended || force) forget_cluster(name);
  return all_ended || force;
}

}  // namespace kolo::cluster

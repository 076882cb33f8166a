#include "cluster/bring_up.h"

#include <algorithm>
#include <thread>

#include "base/errors.h"
#include "base/mutex.h"
#include "cluster/host_shell.h"
#include "cluster/members.h"
#include "cluster/standing.h"

namespace kolo::cluster {
namespace {

using namespace std::chrono_literals;

/// Its tasks have their grace time, and then some.
constexpr auto kEndTime = 30s;

/// The first host that could be anything is `localhost`: others could not use its loopback.
std::string address_for(const HostShell& shell, const std::string& host) {
  if (!shell.is_local()) return "";  // where ssh arrives
  for (const auto& address : resolve_host(host))
    if (is_own_address(address)) return address.host();
  return "127.0.0.1";
}

std::string slots_of(const LinkedMember& linked) {
  return fmt::format("{} at {}", exec::describe(linked.holdings.total),
                     linked.member.address->str());
}

/// One host's way into the cluster. Throws; every message names the host.
class HostStart {
 public:
  HostStart(const ClusterFile& file, const Cluster& cluster, const HostSpec& spec,
            const UpOptions& options)
      : file_(file),
        cluster_(cluster),
        spec_(spec),
        options_(options),
        shell_(file.ssh, spec.host, file.kolo) {}

  HostReport run(Member& member) {
    if (member.address) {
      try {
        return {spec_.host, "stands already: " + slots_of(link(member))};
      } catch (const Error&) {
        member.address.reset();  // it was lost
      }
    }
    prepare(member.is_head);
    StandingOrder order{cluster_.name, cluster_.key, address_for(shell_, spec_.host), spec_.offer,
                        file_.idle_time};
    const StandingAnswer answer = parse(
        shell_.run_kolo("custodian standing", Deadline::after(options_.host_time), encode(order)));
    member.address = SocketAddress::parse(answer.address);
    try {
      return {spec_.host, slots_of(link(member))};
    } catch (const Error& error) {
      member.address.reset();
      throw_error(error.code(),
                  "{}; its custodian (process {}) listens at {}, which must be reachable from "
                  "here, and must have been started with the key of this cluster",
                  error.message(), answer.process, answer.address);
    }
  }

 private:
  StandingAnswer parse(const std::string& output) const {
    try {
      return parse_standing_answer(output);
    } catch (const Error& error) {
      throw_error(error.code(), "{}: {}", spec_.host, error.message());
    }
  }
  [[nodiscard]] LinkedMember link(const Member& member) const {
    return link_one(cluster_, member, owner_name("kolo up"), Deadline::after(kAnswerTime));
  }
  void prepare(bool is_head) const {
    run_all(file_.initialization_commands, "initialization_commands");
    for (const auto& [there, here] : file_.file_mounts)
      shell_.copy_to(here, there, Deadline::after(options_.setup_time));
    run_all(file_.setup_commands, "setup_commands");
    if (is_head)
      run_all(file_.head_setup_commands, "head_setup_commands");
    else
      run_all(file_.worker_setup_commands, "worker_setup_commands");
  }
  void run_all(const std::vector<std::string>& commands, std::string_view what) const {
    for (const auto& command : commands) {
      try {
        shell_.run(command, Deadline::after(options_.setup_time));
      } catch (const Error& error) {
        throw_error(error.code(), "{} (`{}` of {})", error.message(), command, what);
      }
    }
  }

  const ClusterFile& file_;
  const Cluster& cluster_;
  const HostSpec& spec_;
  const UpOptions& options_;
  HostShell shell_;
};

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

/// Hosts that are no longer in the file leave, now or when nobody uses them any more.
void remove_others(Cluster& cluster, const ClusterFile& file, const Tell& tell) {
  for (auto it = cluster.members.begin(); it != cluster.members.end();) {
    const bool stays = std::any_of(file.hosts.begin(), file.hosts.end(),
                                   [&](const HostSpec& spec) { return spec.host == it->host; });
    if (stays) {
      ++it;
      continue;
    }
    try {
      LinkedMember linked =
          link_one(cluster, *it, owner_name("kolo up"), Deadline::after(kAnswerTime));
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
      tell({it->host, "is no longer in the file and does not answer: " + error.message()});
    }
    it = cluster.members.erase(it);
  }
}

/// Finds a custodian whose start was interrupted before its address was known.
void find_lost(const Cluster& cluster, Member& member, std::chrono::milliseconds time) {
  StandingOrder order{cluster.name, cluster.key, "", {}, {}, /*only_find=*/true};
  const HostShell shell(cluster.ssh, member.host, cluster.kolo);
  const auto answer = parse_standing_answer(
      shell.run_kolo("custodian standing", Deadline::after(time), encode(order)));
  if (!answer.address.empty()) member.address = SocketAddress::parse(answer.address);
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

}  // namespace

bool bring_up(const ClusterFile& file, const UpOptions& options, const Tell& tell) {
  const Fd lock = lock_cluster(file.name);
  Cluster cluster = find_cluster(file.name).value_or(Cluster{.name = file.name});
  cluster.ssh = file.ssh;
  cluster.kolo = file.kolo;
  remove_others(cluster, file, tell);
  std::vector<Member> members;
  for (const auto& spec : file.hosts) {
    const Member* known = cluster.find(spec.host);
    members.push_back({spec.host, members.empty(),
                       known != nullptr ? known->address : std::optional<SocketAddress>()});
  }
  for (const auto& member : cluster.members)  // drained ones
    if (std::none_of(members.begin(), members.end(),
                     [&](const Member& other) { return other.host == member.host; }))
      members.push_back(member);
  cluster.members = members;
  save_cluster(cluster);

  Mutex mutex;
  std::vector<bool> stands(file.hosts.size());
  for_each_at_once(file.hosts.size(), [&](std::size_t i) {
    Member member = members[i];
    HostReport report{member.host, "", true};
    try {
      report = HostStart(file, cluster, file.hosts[i], options).run(member);
    } catch (const Error& error) {
      report.what = error.message();
    }
    const MutexLock hold(mutex);
    members[i] = member;
    stands[i] = !report.is_failure;
    tell(report);
  });
  cluster.members = members;
  save_cluster(cluster);
  return stands.front() && std::count(stands.begin() + 1, stands.end(), true) >= file.min_workers;
}

bool bring_down(const std::string& name, bool force, std::chrono::milliseconds time,
                const Tell& tell) {
  const Fd lock = lock_cluster(name);
  const Cluster cluster = load_cluster(name);
  Mutex mutex;
  bool all_ended = true;
  for_each_at_once(cluster.members.size(), [&](std::size_t i) {
    const HostReport report = end_member(cluster, cluster.members[i], time);
    const MutexLock hold(mutex);
    all_ended = all_ended && !report.is_failure;
    tell(report);
  });
  if (all_ended || force) forget_cluster(name);
  return all_ended || force;
}

}  // namespace kolo::cluster

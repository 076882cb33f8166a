#include "cluster/members.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/host.h"
#include "base/log.h"
#include "base/registry.h"
#include "cluster/placing.h"

namespace kolo::cluster {
namespace {

/// A link that is closed before it is answered is tried again so often, after a pause that doubles.
constexpr int kMostTries = 3, kPauseMs = 20;

void take(LinkedMember& member, const OnEvent& on) {
  try {
    for (auto& event : member.link->receive()) {
      if (auto* hello = std::get_if<exec::Hello>(&event)) member.hello = std::move(*hello);
      if (auto* holdings = std::get_if<exec::Holdings>(&event))
        member.holdings = std::move(*holdings);
      else if (const auto* load = std::get_if<exec::HostLoad>(&event))
        member.load = *load;
      else if (on)
        on(member, event);
    }
    if (member.link->closed()) member.error = member.link->reason_of_end();
  } catch (const Error& error) {
    member.error = error.message();
  }
}

bool is_known(const LinkedMember& member) {
  return !member.answers() || member.holdings.total.slots > 0;
}

}  // namespace

std::string owner_name(const std::string& what) {
  return fmt::format("{} of {}@{} (process {})", what, user_name(), host_name(), ::getpid());
}

std::unique_ptr<exec::Link> begin_link(const Cluster& cluster, const Member& member,
                                       const std::string& owner, std::chrono::milliseconds lease) {
  if (!member.address)
    throw_error(ErrorCode::unavailable, "it does not stand; `kolo up` starts it");
  Fd socket = begin_connect_tcp(*member.address);
  set_keep_alive(socket.get(), cluster.keep_alive);
  return exec::Link::to_socket(std::move(socket), cluster.key, member.host, owner, lease);
}

bool wait_for_any(std::vector<LinkedMember>& members, Deadline deadline, const OnEvent& on) {
  std::vector<pollfd> polls;
  for (const auto& member : members) {
    const bool is_open = member.link && member.answers();
    polls.push_back({is_open ? member.link->read_fd() : -1, POLLIN, 0});
    polls.push_back({is_open ? member.link->write_fd() : -1, POLLOUT, 0});
  }
  if (::poll(polls.data(), polls.size(), deadline.poll_timeout_ms()) == 0) return false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (polls[2 * i + 1].revents != 0) members[i].link->flush();
    if (polls[2 * i].revents != 0) take(members[i], on);
  }
  return true;
}

std::vector<LinkedMember> link_all(const Cluster& cluster, const std::string& owner,
                                   Deadline deadline) {
  std::vector<LinkedMember> members;
  for (const auto& member : cluster.members) {
    LinkedMember& linked = members.emplace_back(LinkedMember{member});
    try {
      linked.link = begin_link(cluster, member, owner);
    } catch (const Error& error) {
      linked.error = error.message();
    }
  }
  for (int again = 0;;) {
    while (!std::all_of(members.begin(), members.end(), is_known))
      if (!wait_for_any(members, deadline) && deadline.passed()) break;
    // Among many strangers a custodian drops one or the other that is none.
    const bool any_dropped =
        std::any_of(members.begin(), members.end(), [](const LinkedMember& member) {
          return member.link && !member.answers() && !member.link->has_answered();
        });
    if (!any_dropped || again == kMostTries || deadline.passed()) break;
    ::poll(nullptr, 0, kPauseMs << again++);
    for (auto& member : members) {
      if (!member.link || member.answers() || member.link->has_answered()) continue;
      try {
        member.link = begin_link(cluster, member.member, owner);
        member.error.clear();
      } catch (const Error& error) {
        member.error = error.message();
      }
    }
  }
  for (auto& member : members)
    if (!is_known(member)) member.error = "it does not answer";
  return members;
}

LinkedMember link_one(const Cluster& cluster, const Member& member, const std::string& owner,
                      Deadline deadline) {
  Cluster only{.name = cluster.name, .key = cluster.key};
  only.members = {member};
  LinkedMember linked = std::move(link_all(only, owner, deadline).front());
  if (!linked.answers()) throw_error(ErrorCode::unavailable, "{}: {}", member.host, linked.error);
  return linked;
}

std::vector<launch::Host> hosts_of_cluster(const std::string& name,
                                           const exec::Amounts& each_rank) {
  const Cluster cluster = load_cluster(cluster_name_or_only(name));
  std::vector<launch::Host> hosts;
  std::set<std::string> offered;
  for (const auto& linked : link_all(cluster, owner_name("a look at the cluster"),
                                     Deadline::after(answer_time(cluster)))) {
    for (const auto& [resource, amount] : linked.holdings.total.named) offered.insert(resource);
    if (linked.answers())
      hosts.push_back({linked.member.host, slots_for(linked.holdings, each_rank)});
    else
      log::warning("{} of cluster {} is lost: {}", linked.member.host, cluster.name, linked.error);
  }
  if (hosts.empty())
    throw_error(ErrorCode::unavailable, "no host of cluster {} answers", cluster.name);
  for (const auto& [resource, amount] : each_rank.named)
    if (amount > 0 && !offered.contains(resource) && hosts.size() == cluster.members.size())
      throw_unknown_name("resource of the cluster", resource, {offered.begin(), offered.end()},
                         ErrorCode::invalid_argument);
  return hosts;
}

int slots_for(exec::Holdings host, const exec::Amounts& each_rank) {
  host.free = host.total;
  host.is_draining = false;
  return room_for(host, each_rank) * std::max(1, each_rank.slots);
}

int print_slots_for(const std::string& name, const std::string& owner) {
  const Cluster cluster = load_cluster(name);
  for (const auto& linked : link_all(cluster, owner_name("a look at the cluster"),
                                     Deadline::after(answer_time(cluster)))) {
    if (!linked.answers() || linked.holdings.is_draining) continue;
    int slots = linked.holdings.free.slots;
    for (const auto& held : linked.holdings.held)
      if (held.owner == owner) slots += held.amounts.slots;
    if (slots > 0) fmt::print("{} slots={}\n", linked.member.host, slots);
  }
  return 0;
}

}  // namespace kolo::cluster

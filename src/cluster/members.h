// Links to the custodians of a cluster, and what the hosts say about themselves.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/cluster.h"
#include "exec/link.h"
#include "launch/hosts.h"

namespace kolo::cluster {

/// A custodian that stands answers within milliseconds.
inline constexpr std::chrono::seconds kAnswerTime{5};
/// Who does not answer for `keep_alive` is lost, also at the beginning.
inline std::chrono::seconds answer_time(const Cluster& cluster) {
  return std::min(kAnswerTime, cluster.keep_alive);
}

/// "WHAT of USER@HOST (process 123)": how others see who has what.
std::string owner_name(const std::string& what);

/// Begins to connect and returns at once: Hello comes over the link. Throws unavailable.
std::unique_ptr<exec::Link> begin_link(const Cluster& cluster, const Member& member,
                                       const std::string& owner,
                                       std::chrono::milliseconds lease = {});

/// A member with its link, or with the reason why there is none.
struct LinkedMember {
  Member member;
  std::unique_ptr<exec::Link> link{};
  exec::Hello hello{};
  exec::Holdings holdings{};
  exec::HostLoad load{};  ///< as of the last Link::measure()
  std::string error{};    ///< "" = it answers

  [[nodiscard]] bool answers() const noexcept { return error.empty(); }
};

/// Connects to all at once and waits for each to answer, until the deadline at most.
std::vector<LinkedMember> link_all(const Cluster& cluster, const std::string& owner,
                                   Deadline deadline);
/// The same for one. Throws unavailable.
LinkedMember link_one(const Cluster& cluster, const Member& member, const std::string& owner,
                      Deadline deadline);

/// The hosts that answer, with the slots of as many ranks as they have room for when nobody uses
/// them. Warns of those that do not answer; throws unavailable if none does.
std::vector<launch::Host> hosts_of_cluster(const std::string& name, const exec::Amounts& each_rank);

/// The slots of as many ranks as a host has room for when nobody uses it.
int slots_for(exec::Holdings host, const exec::Amounts& each_rank);

/// `kolo custodian hosts`: prints "HOST slots=N" for each host that takes work, N being what is
/// free there and what `owner` has.
int print_slots_for(const std::string& name, const std::string& owner);

/// Is told what comes over the links, beside Hello and Holdings.
using OnEvent = std::function<void(LinkedMember&, const exec::Event&)>;
/// Waits until something comes over one of the links, at most until the deadline. False: it has
/// passed. Links that have closed are marked.
bool wait_for_any(std::vector<LinkedMember>& members, Deadline deadline, const OnEvent& on = {});

}  // namespace kolo::cluster

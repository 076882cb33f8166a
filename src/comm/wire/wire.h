// Groups that cross hosts: what a Context builds when its ranks do not share one.
//
//   flat wire group       every rank talks to every rank through one Messenger
//   hierarchical group    ranks of one host meet in their local group (shared memory), and only
//                         what is left of the data crosses to the other hosts, once per host
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/group.h"
#include "comm/liveness.h"
#include "comm/wire/messenger.h"
#include "kolo/buffer.h"
#include "kolo/topology.h"

namespace kolo::comm {

/// Makes a Messenger between some ranks of the world, this one among them. Collective over them;
/// `key` is the same on each and names the meeting. Must stay callable as long as any group made
/// with it, because subset() makes more.
using ConnectWire = std::function<std::unique_ptr<Messenger>(const std::vector<int>& world_ranks,
                                                             const std::string& key)>;

struct WireOptions {
  /// Of the wire, for people: "tcp", "mpi".
  std::string name;

  /// How long an operation may wait for another rank.
  std::chrono::milliseconds timeout{300'000};

  /// Where departures are told; null: only closed connections and timeouts are noticed.
  std::shared_ptr<Liveness> liveness;

  /// Where hierarchical groups put what the ranks of a host read of each other; null: the heap,
  /// which costs one copy more.
  std::shared_ptr<SharedMemory> memory;

  /// Names this group among those made with the same ConnectWire. Equal on all members.
  std::string key = "world";

  /// World rank of each member; empty: the group is the world.
  std::vector<int> world_ranks;
};

/// How long one wait may take. What is left of the timeout is for the members, which did not begin
/// to wait at the same moment, to tell each other whom they have given up.
inline std::chrono::milliseconds wait_limit(std::chrono::milliseconds timeout) {
  return timeout - std::min(timeout / 4, std::chrono::milliseconds(1000));
}

/// The usual ConnectWire: members meet through `bootstrap` and talk over `plugin`, which must
/// outlive it. Connecting ends early when `liveness` tells of a member's death; `timeout` limits
/// it.
ConnectWire make_connect_wire(std::shared_ptr<Bootstrap> bootstrap,
                              std::shared_ptr<Liveness> liveness, const WirePlugin& plugin,
                              std::string network_interface, std::chrono::milliseconds timeout);

/// Collective over the members. `topology` says how many there are and which one this is.
std::unique_ptr<Group> make_flat_wire_group(const Topology& topology, ConnectWire connect,
                                            WireOptions options);

/// Collective over the members. `local` holds the members on this host in ascending order of rank
/// (a solo group if there is one). With one host `local` itself is returned.
std::unique_ptr<Group> make_hierarchical_group(std::unique_ptr<Group> local,
                                               const Topology& topology, ConnectWire connect,
                                               WireOptions options);

}  // namespace kolo::comm

// Messages between ranks of different hosts, and the plug-ins that carry them.
//
// TCP is built in (tcp/wire.h). Other plug-ins are shared libraries (kolo_wire_openmpi,
// kolo_wire_mpich), loaded only when they are chosen, so that MPI is not linked into programs that
// do without it. Exceptions of type kolo::Error cross the boundary; nothing else does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "comm/bootstrap.h"

namespace kolo::comm {

class Messenger {
 public:
  using Ticket = std::uint64_t;

  virtual ~Messenger() = default;

  /// Starts to move `bytes` (may be 0) to / from member `peer` (never oneself). Memory must stay
  /// valid until wait(). Messages of one pair and tag match in the order in which they were posted;
  /// both sides must name the same size. Tags are free numbers below 2^20.
  virtual Ticket post_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) = 0;
  virtual Ticket post_recv(int peer, std::uint32_t tag, void* data, std::size_t bytes) = 0;

  /// Waits for one operation. Throws peer_lost (rank() = member index) when the connection broke,
  /// the deadline passed or a member said farewell; all later calls then throw too.
  virtual void wait(Ticket ticket, Deadline deadline) = 0;

  /// Whether an operation is complete, without waiting; if so its ticket is spent. Throws as
  /// wait().
  virtual bool test(Ticket ticket) = 0;

  using SmallMessage = std::span<const std::byte>;

  /// Each of `members` (this one among them, the same list on all) sends a small message, of at
  /// most kSmallBytes, to each of the others, with the least latency this wire has: mine[i] goes to
  /// members[i]. What members[i] sent lands at `all + i * stride`, one's own message to oneself
  /// too. Sizes may differ, but none is larger than `stride`.
  virtual void exchange_small(std::span<const int> members, std::span<const SmallMessage> mine,
                              void* all, std::size_t stride, Deadline deadline) = 0;
  static constexpr std::size_t kSmallBytes = 65 * 1024;

  /// Makes all waits, now and later, throw peer_lost of `peer`. From any thread; used when a rank
  /// is known to be dead although its connection has not said so.
  virtual void abort(int peer, const std::string& reason) noexcept = 0;

  /// The end of this messenger, after a wait has failed: tells all members that this one has given
  /// `suspect` up, which makes their waits fail too, and hears until `deadline` whom they have
  /// given up. Returns who was lost in the end: a suspect that says that it waits for another is
  /// not to blame, that other one is; one that is silent, or whose connection is closed, is. Memory
  /// of operations must stay valid until this returns, not longer.
  virtual int farewell(int suspect, Deadline deadline) noexcept = 0;
};

/// How a new Messenger's members meet.
struct WireSetup {
  std::vector<int> world_ranks;  ///< of the members; index = member
  int me = 0;                    ///< index of this rank
  /// Collective over the members: everyone's bytes, by member. May be called more than once.
  std::function<std::vector<std::string>(const std::string& mine)> allgather;
  /// Has `action` called, on another thread, if a member is lost while the returned guard lives
  /// (at once if that has happened). It must not block for long or throw.
  std::function<std::shared_ptr<void>(const std::function<void()>& action)> when_lost =
      [](const auto&) { return nullptr; };
  std::string network_interface;         ///< "" = the one that reaches the other hosts
  std::chrono::milliseconds timeout{0};  ///< for connecting
};

/// What a plug-in offers. `abi` is checked when it is loaded.
struct WirePlugin {
  static constexpr int kAbi = 3;
  int abi = kAbi;
  const char* name = "";     ///< "tcp", "mpi"
  const char* library = "";  ///< for people: "Open MPI 4.1.4"
  std::unique_ptr<Messenger> (*connect)(const WireSetup& setup) = nullptr;
  /// Null if the wire needs somebody else to introduce the ranks.
  std::shared_ptr<Bootstrap> (*make_bootstrap)() = nullptr;
};

/// The symbol each plug-in exports: extern "C" const kolo::comm::WirePlugin* kolo_wire_plugin().
inline constexpr const char* kWirePluginSymbol = "kolo_wire_plugin";

/// "tcp", or loads kolo_wire_<name>.so from KOLO_PLUGIN_DIR, the build or the installation, once
/// per process. Throws unsupported, saying where it looked and which package is missing.
const WirePlugin& load_wire_plugin(const std::string& name);

/// Whether load_wire_plugin would succeed; why not, in `why` if not null.
bool wire_plugin_available(const std::string& name, std::string* why = nullptr);

}  // namespace kolo::comm

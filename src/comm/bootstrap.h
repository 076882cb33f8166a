// How the ranks of a job find each other before any transport exists.
//
// Implementations: the client of `kolo run`'s rendezvous (rendezvous/), MPI (a wire plug-in), and a
// process alone. A Bootstrap also carries news of ranks that died, as far as its launcher tells.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "kolo/topology.h"

namespace kolo::comm {

/// How a rank went. Numbers are part of the rendezvous protocol: never reuse one.
enum class DepartureKind : std::uint8_t {
  unknown = 1,   ///< only that it is gone is known: it may be through with its work
  finished = 2,  ///< it exited with status 0
  failed = 3,    ///< it was killed or exited with an error, or its host or connection was lost
};

/// A rank that is gone.
struct Departure {
  int rank = -1;       ///< in the world
  std::string reason;  ///< for people: "was killed by signal 9", "exited with status 3" …
  DepartureKind kind = DepartureKind::unknown;
};

/// Of a rank whose process has ended so, as from waitpid.
Departure departure_by_status(int rank, int status);

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual const Topology& topology() const noexcept = 0;

  /// For the log: "kolo run", "mpirun (Open MPI)", "alone" …
  [[nodiscard]] virtual std::string describe() const = 0;

  /// The wire plug-in that introduced the ranks, which can then also carry their messages; "" if
  /// it was not one.
  [[nodiscard]] virtual std::string wire_plugin() const { return ""; }

  /// Collective over the ranks listed in `members` (world ranks, the same list on each, this rank
  /// among them): each contributes `mine`, each gets all contributions in the order of `members`.
  /// `key` names the meeting: different meetings that may overlap in time need different keys.
  /// Blocks until `deadline`; throws timeout (naming a rank that did not come), peer_lost, io.
  virtual std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                             std::string_view mine, Deadline deadline) = 0;

  /// A descriptor that becomes readable when take_news() has something to say, or -1.
  /// Polled by one background thread while the others may be inside allgather().
  [[nodiscard]] virtual int news_fd() const noexcept { return -1; }

  /// Departures since the last call. Does not block. Called when news_fd() is readable.
  virtual std::vector<Departure> take_news() { return {}; }

  /// Tells the launcher what this rank does (an encoded ActivityReport). Does not block; what does
  /// not get through is lost. Called by one thread.
  virtual void report(std::string_view /*activity*/) {}
};

/// A job of one rank.
std::shared_ptr<Bootstrap> make_lone_bootstrap();

/// What the environment says: kolo run, mpirun, srun, or alone. The others are met within
/// `patience`, which begins when there is a group to meet: a worker of an elastic job may wait for
/// one much longer. Its launcher is told that operations will wait for `timeout`. Throws
/// invalid_argument for an environment that contradicts itself, unavailable if the meeting place
/// cannot be reached.
std::shared_ptr<Bootstrap> make_bootstrap_from_environment(std::chrono::milliseconds patience,
                                                           std::chrono::milliseconds timeout);

}  // namespace kolo::comm

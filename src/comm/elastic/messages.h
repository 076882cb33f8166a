// What the workers of an elastic job and their launcher say to each other.
//
// A worker is a process of the job; its number is its own for ever. The launcher forms groups of
// workers, one after the other. Each group has a generation: 1, 2, … In a group a worker has a
// rank. Nothing of one generation can be taken for another: each has a meeting place of its own,
// with a secret of its own, and from there on every segment and connection is new.
//
//   worker → launcher   ready      "I am in no group; take me into the next one"
//                       finished   "the program's function has come to its end"
//                       leaving    "I was asked to go; do not count on me any longer"
//                       alive      "my process runs, whatever it is at"; once in a while
//                       timeout    "operations of my groups wait for others this long"
//   launcher → worker   group      "you are rank r of generation g, which meets there"
//                       change     "leave generation g at the end of the step: it is to change"
//                       retire     "leave at the end of the step, and do not come back"
//                       over       "generation g has finished its work; there is no next one"
//                       wait       "others are at work, or start, for whom you wait"; answers alive
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/frames.h"
#include "base/secret.h"

namespace kolo::comm::elastic {

using Generation = std::uint64_t;

struct Ready {
  Generation left = 0;  ///< the group that the worker was in; 0 = none yet
  int blamed = -1;      ///< the rank of that group because of which it was left, if there is one
  bool operator==(const Ready&) const = default;
};
struct Finished {
  Generation generation = 0;
  bool operator==(const Finished&) const = default;
};
struct Leaving {
  bool operator==(const Leaving&) const = default;
};
struct Alive {
  bool operator==(const Alive&) const = default;
};
struct Timeout {
  std::chrono::milliseconds of_operations{0};  ///< kLongestTime at the most
  bool operator==(const Timeout&) const = default;
};
using FromWorker = std::variant<Ready, Finished, Leaving, Alive, Timeout>;

struct GroupPlan {
  Generation generation = 0;
  int rank = 0;
  std::vector<int> host_of_rank;  ///< numbers are equal for ranks of one host
  std::uint16_t port = 0;         ///< of the meeting place, where the launcher's door is
  bool operator==(const GroupPlan&) const = default;
};
struct Change {
  Generation generation = 0;
  bool operator==(const Change&) const = default;
};
struct Retire {
  bool operator==(const Retire&) const = default;
};
struct Over {
  Generation generation = 0;
  bool operator==(const Over&) const = default;
};
struct Wait {
  bool operator==(const Wait&) const = default;
};
using FromLauncher = std::variant<GroupPlan, Change, Retire, Over, Wait>;

/// Between two messages of a worker that say that it is alive.
inline constexpr std::chrono::seconds kPulse{5};

/// Whole frames.
std::string encode(const FromWorker& message);
std::string encode(const FromLauncher& message);
/// Throw corruption for whatever does not fit exactly.
FromWorker decode_from_worker(const Frame& frame);
FromLauncher decode_from_launcher(const Frame& frame);

/// Of type + payload.
inline constexpr std::size_t kMessageLimit = 16U << 20;

/// The secret of a generation's meeting place. A worker that missed the change knows the place of
/// its old group only, and cannot prove itself at another.
Secret secret_of(const Secret& job, Generation generation);

}  // namespace kolo::comm::elastic

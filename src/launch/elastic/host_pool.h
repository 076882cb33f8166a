// The hosts of an elastic job, their slots, and which of them get no new workers for now.
// No clock and no randomness of its own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/hosts.h"

namespace kolo::launch::elastic {

using Time = std::chrono::nanoseconds;  ///< since any moment

/// After a failure a host rests for low · 2^n (at its n-th failure), plus up to low at random, and
/// high at most.
struct Cooldown {
  Time low{0}, high{0};
};

class HostPool {
 public:
  /// Without a cooldown, a host on which a worker failed never gets a new one. `draw` gives numbers
  /// from 0 to 1.
  HostPool(std::optional<Cooldown> cooldown, std::function<double()> draw)
      : cooldown_(cooldown), draw_(std::move(draw)) {}

  /// The hosts as they are now, in the order in which they are to be filled.
  void set(std::vector<Host> hosts);
  [[nodiscard]] bool contains(const std::string& host) const;

  struct Slot {
    std::string host;
    int index = 0;
    int slots = 1;  ///< of the host
    bool operator==(const Slot&) const = default;
  };
  /// A slot of a host that may get new workers, the first host first.
  [[nodiscard]] std::optional<Slot> take(Time now);
  /// Whether the host is still listed, with as many slots.
  [[nodiscard]] bool has(const Slot& slot) const;
  void give_back(const Slot& slot);

  /// A worker failed there.
  void blacklist(const std::string& host, Time now);
  /// Somebody else has taken its slots in the meantime: no new workers until then.
  void rest(const std::string& host, Time until) { blacklist_[host].until = until; }
  /// A worker was asked to leave there: the host is about to go. It is used again when it has been
  /// missing from the list and has come back.
  void avoid(const std::string& host) { avoided_.insert(host); }

  /// When a host that rests may be used again.
  [[nodiscard]] std::optional<Time> next_return(Time now) const;
  /// For people: which hosts get no new workers, "" if there are none.
  [[nodiscard]] std::string describe_unusable(Time now) const;

 private:
  struct Rest {
    int failures = 0;
    std::optional<Time> until;  // nothing: for ever
  };
  [[nodiscard]] bool is_usable(const std::string& host, Time now) const;

  std::optional<Cooldown> cooldown_;
  std::function<double()> draw_;
  std::vector<Host> hosts_;
  std::map<std::string, std::set<int>> taken_;
  std::map<std::string, Rest> blacklist_;
  std::set<std::string> avoided_;
};

}  // namespace kolo::launch::elastic

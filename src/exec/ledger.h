// What a host has, and who was promised which part of it. Nothing is promised twice.
//
// It decides and does nothing: the custodian that listens on the host (custodian.h) asks it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/task.h"

namespace kolo::exec {

/// A custodian's name for one of its owners; never reused.
using OwnerId = std::uint64_t;

struct Amounts {
  int slots = 0;  ///< processors, as long as the host has so many
  int gpus = 0;
  std::map<std::string, double> named{};  ///< memory among them, in bytes

  bool operator==(const Amounts&) const = default;
};

/// "2 slots, 1 GPU, 3 licences".
std::string describe(const Amounts& amounts);

/// What one owner has by one reservation.
struct Holding {
  std::string owner;
  Amounts amounts{};
  std::vector<int> processors{};  ///< empty where the host has more slots than processors
};

struct Holdings {
  Amounts total{}, free{};
  bool is_draining = false;
  std::vector<Holding> held{};
};

class Ledger {
 public:
  struct Grant {
    Holding holding;
    std::vector<int> slots{}, gpus{};  ///< by number
    bool is_over = false;              ///< free as soon as nothing of it runs
  };
  using Key = std::pair<OwnerId, ReservationId>;

  Ledger() = default;
  /// Slot i is the i-th of the processors, if there are enough of them.
  Ledger(Amounts total, std::vector<int> processors);

  /// Nothing if it was granted; else why it was not, and who has what is missing.
  /// Throws already_exists and invalid_argument.
  std::optional<std::string> reserve(Key key, const std::string& owner, const Amounts& want);
  /// From now on free as soon as nothing of it runs; see free_ended().
  void give_back(Key key);
  void give_back_all(OwnerId owner);
  /// Frees what was given back and is not in use. Whether anything changed.
  template <class InUse>
  bool free_ended(InUse&& in_use) {
    return std::erase_if(grants_, [&](const auto& entry) {
             return entry.second.is_over && !in_use(entry.first);
           }) > 0;
  }

  [[nodiscard]] const Grant* find(Key key) const;
  void set_draining(bool is_draining) noexcept { is_draining_ = is_draining; }
  [[nodiscard]] Holdings holdings() const;

 private:
  [[nodiscard]] Amounts free() const;
  [[nodiscard]] std::string holders() const;

  Amounts total_;
  std::vector<int> processors_;
  bool is_draining_ = false;
  std::map<Key, Grant> grants_;
};

}  // namespace kolo::exec

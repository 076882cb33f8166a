// Finds a trial in a list by its id.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kolo/search/trial.h"

namespace kolo::search {

/// Ids are any numbers. Those of a study count upward from zero, and cost four bytes each.
class TrialPlaces {
 public:
  /// False: the id has a place already, and nothing has changed.
  bool add(TrialId id, std::uint32_t place);
  void remove(TrialId id);
  [[nodiscard]] std::optional<std::uint32_t> find(TrialId id) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> by_number_;
  std::unordered_map<std::uint64_t, std::uint32_t> others_;  // ids far above their number
  std::uint64_t count_ = 0;
};

}  // namespace kolo::search

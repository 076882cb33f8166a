// The order of metrics: which of two values is better.
#pragma once

#include <cmath>

namespace kolo {

/// A strict weak order in which NaN is worse than every number: what has diverged is never the
/// best, wherever it stands in a list.
inline bool is_better_metric(double value, double than, bool lower_is_better) noexcept {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return lower_is_better ? value < than : value > than;
}

}  // namespace kolo

// How long a metric may fail to become better.
#pragma once

#include <cstdint>
#include <string_view>

#include "nas/problem/hyperparameters.h"

namespace kolo::nas {

/// Losses and errors become better downward, everything else upward, as Keras' mode "auto" has it.
inline bool lower_is_better(std::string_view metric) {
  for (const std::string_view upward : {"acc", "r2", "auc"})
    if (metric.find(upward) != std::string_view::npos) return false;
  return true;
}

class Patience {
 public:
  explicit Patience(const PatienceSettings& settings)
      : downward_(settings.lower_is_better.value_or(lower_is_better(settings.monitor))),
        patience_(settings.patience),
        min_delta_(settings.min_delta) {}

  /// True when the metric has not become better for `patience` epochs; counting begins anew then.
  bool is_over(double value) {
    const double gain = downward_ ? best_ - value : value - best_;
    if (!begun_ || gain > min_delta_) {
      begun_ = true;
      best_ = value;
      waited_ = 0;
      return false;
    }
    if (++waited_ < patience_) return false;
    waited_ = 0;
    return true;
  }

 private:
  bool downward_;
  std::int64_t patience_;
  double min_delta_;
  bool begun_ = false;
  double best_ = 0;
  std::int64_t waited_ = 0;
};

}  // namespace kolo::nas

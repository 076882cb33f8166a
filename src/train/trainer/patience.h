// How long a metric may fail to become better: the rule of early stopping and of lowering a rate.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/frames.h"

namespace kolo::train {

class Patience {
 public:
  /// A value is better than the best so far if it is by more than `min_delta`.
  Patience(bool lower_is_better, std::int64_t epochs, double min_delta)
      : lower_is_better_(lower_is_better), epochs_(epochs), min_delta_(min_delta) {}

  /// Takes the value of one more epoch. True when none has been better for so many epochs (at least
  /// one); counting begins anew then.
  bool is_over(double value) {
    if (!best_ || is_better(value)) {
      best_ = value;
      waited_ = 0;
      return false;
    }
    if (++waited_ < epochs_) return false;
    waited_ = 0;
    return true;
  }

  void save(ByteWriter& writer) const {
    writer.u8(best_.has_value()).u64(std::bit_cast<std::uint64_t>(best_.value_or(0)));
    writer.u64(static_cast<std::uint64_t>(waited_));
  }
  void load(ByteReader& reader) {
    const bool has_best = reader.u8() != 0;
    const auto best = std::bit_cast<double>(reader.u64());
    best_ = has_best ? std::optional(best) : std::nullopt;
    waited_ = static_cast<std::int64_t>(reader.u64());
  }

 private:
  /// NaN is worse than every number.
  [[nodiscard]] bool is_better(double value) const {
    if (std::isnan(*best_)) return !std::isnan(value);
    return (lower_is_better_ ? *best_ - value : value - *best_) > min_delta_;
  }

  bool lower_is_better_;
  std::int64_t epochs_;
  double min_delta_;
  std::optional<double> best_;
  std::int64_t waited_ = 0;
};

}  // namespace kolo::train

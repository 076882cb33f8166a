#include "train/bucket_tuner.h"

#include <fmt/format.h>

#include <algorithm>

namespace kolo::train {
namespace {

constexpr std::size_t kWarmUpSteps = 2;  // memory of new buckets is touched for the first time
constexpr std::size_t kSteps = 10;
constexpr double kMargin = 0.99;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

BucketTuner::BucketTuner(std::size_t given_bytes) : chosen_(given_bytes) {
  for (const double factor : {1.0, 0.25, 0.5, 2.0, 4.0, 8.0})
    planned_.push_back({static_cast<std::size_t>(static_cast<double>(given_bytes) * factor), 0});
}

std::optional<std::size_t> BucketTuner::record(double seconds) {
  if (is_done_) return std::nullopt;
  times_.push_back(seconds);
  if (times_.size() < kWarmUpSteps + kSteps) return std::nullopt;
  planned_[current_].seconds = median({times_.begin() + kWarmUpSteps, times_.end()});
  times_.clear();
  return next_trial();
}

std::optional<std::size_t> BucketTuner::next_trial() {
  const std::size_t before = planned_[current_].bytes;
  const Trial given = planned_[0];
  if (++current_ == planned_.size()) {
    if (!is_confirming_) {
      is_confirming_ = true;
      const Trial best =
          *std::min_element(planned_.begin(), planned_.end(),
                            [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
      if (best.seconds < given.seconds * kMargin) {
        planned_.push_back({given.bytes, 0});
        planned_.push_back({best.bytes, 0});
      }
    }
    if (current_ == planned_.size()) {
      const Trial& last = planned_.back();
      const Trial& against = planned_[planned_.size() - 2];
      const bool was_confirmed = last.bytes != given.bytes && against.bytes == given.bytes &&
                                 planned_.size() > 6 && last.seconds < against.seconds * kMargin;
      chosen_ = was_confirmed ? last.bytes : given.bytes;
      is_done_ = true;
      return chosen_ == before ? std::nullopt : std::optional(chosen_);
    }
  }
  return planned_[current_].bytes;
}

std::string BucketTuner::csv() const {
  std::string text = "trial,bucket_bytes,seconds_per_step,chosen\n";
  for (std::size_t i = 0; i < current_; ++i)
    text += fmt::format("{},{},{:.6f},{}\n", i, planned_[i].bytes, planned_[i].seconds,
                        is_done_ && planned_[i].bytes == chosen_ ? 1 : 0);
  return text;
}

}  // namespace kolo::train

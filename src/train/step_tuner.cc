// Stages: six sizes of buckets; the helper thread, if there is a choice; two other sizes of one
// trip, if there is a network; and, if something was faster by the margin, a second comparison of
// the best settings with the given ones. A trial is two steps of warm-up and ten that count, judged
// by their median.
#include "train/step_tuner.h"

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

std::uint64_t scaled(std::uint64_t bytes, double factor) {
  return std::max<std::uint64_t>(1,
                                 static_cast<std::uint64_t>(static_cast<double>(bytes) * factor));
}

}  // namespace

StepTuner::StepTuner(const StepSettings& given, bool may_use_helper)
    : given_(given), may_use_helper_(may_use_helper), chosen_(given) {
  for (const double factor : {1.0, 0.25, 0.5, 2.0, 4.0, 8.0}) {
    StepSettings settings = given;
    settings.bucket_bytes = scaled(given.bucket_bytes, factor);
    plan(settings);
  }
}

std::optional<StepSettings> StepTuner::record(double seconds) {
  if (is_done()) return std::nullopt;
  times_.push_back(seconds);
  if (times_.size() < kWarmUpSteps + kSteps) return std::nullopt;
  const StepSettings before = trials_[current_].settings;
  trials_[current_].seconds = median({times_.begin() + kWarmUpSteps, times_.end()});
  times_.clear();
  ++current_;
  while (current_ == trials_.size() && !is_done()) plan_next_stage();
  const StepSettings& next = is_done() ? chosen_ : trials_[current_].settings;
  return next == before ? std::nullopt : std::optional(next);
}

void StepTuner::plan_next_stage() {
  const StepSettings best = this->best();
  StepSettings other = best;
  switch (stage_) {
    case Stage::sizes:
      stage_ = Stage::helper;
      other.uses_helper = !best.uses_helper;
      if (may_use_helper_) plan(other);
      break;
    case Stage::helper:
      stage_ = Stage::trips;
      if (best.one_trip_bytes == 0) break;
      for (const double factor : {0.25, 4.0}) {
        other.one_trip_bytes = scaled(best.one_trip_bytes, factor);
        plan(other);
      }
      break;
    case Stage::trips:
      stage_ = Stage::confirmation;
      if (best == given_) break;
      plan(given_);
      plan(best);
      break;
    case Stage::confirmation: {
      stage_ = Stage::done;
      const Trial& last = trials_.back();
      const Trial& against = trials_[trials_.size() - 2];
      const bool was_tried_again = against.settings == given_ && last.settings == best;
      if (was_tried_again && last.seconds < against.seconds * kMargin) chosen_ = best;
      break;
    }
    case Stage::done: break;
  }
}

StepSettings StepTuner::best() const {
  const Trial& fastest =
      *std::min_element(trials_.begin(), trials_.end(),
                        [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  return fastest.seconds < trials_.front().seconds * kMargin ? fastest.settings : given_;
}

std::string StepTuner::csv() const {
  std::string text = "trial,bucket_bytes,reduced_by,one_trip_bytes,seconds_per_step,chosen\n";
  for (std::size_t i = 0; i < current_; ++i) {
    const auto& [settings, seconds] = trials_[i];
    text += fmt::format("{},{},{},{},{:.6f},{}\n", i, settings.bucket_bytes,
                        settings.uses_helper ? "helper" : "trainer", settings.one_trip_bytes,
                        seconds, is_done() && settings == chosen_ ? 1 : 0);
  }
  return text;
}

}  // namespace kolo::train

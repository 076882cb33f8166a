// The common part of samplers that wrap another sampler.
#pragma once

#include <memory>
#include <string>

#include "kolo/search/sampler.h"

namespace kolo::search {

/// The outcome that was told for a trial (its constraints added up to one).
Outcome outcome_of(const Trial& trial, const std::vector<Direction>& directions);

/// The options of an inner sampler: as the outer ones, with other settings and a seed of its own.
SamplerOptions inner_options(const SamplerOptions& outer, const Value* settings);

/// Hands the history on to an inner sampler, whose trials are numbered by the outer's asks.
class Follower {
 public:
  explicit Follower(std::unique_ptr<Sampler> sampler) : sampler_(std::move(sampler)) {}

  [[nodiscard]] Sampler& sampler() { return *sampler_; }
  [[nodiscard]] const Sampler& sampler() const { return *sampler_; }

  /// Asks for trial `number`, which the next begin() with this number does not recall.
  std::optional<Point> ask(std::uint64_t number) {
    auto point = sampler_->ask(TrialId{number});
    if (point) begun_ = number + 1;
    return point;
  }
  void begin(std::uint64_t number, const Point& point) {
    if (number < begun_) return;
    sampler_->recall(TrialId{number}, point);
    begun_ = number + 1;
  }

 private:
  std::unique_ptr<Sampler> sampler_;
  std::uint64_t begun_ = 0;  // trials that the inner sampler knows
};

}  // namespace kolo::search

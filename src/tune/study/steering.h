// Steers a study: keeps the sampler, the scheduler and the stoppers in step, and turns their
// answers into rulings.
//
// It has no clock, no threads, no input and no output. Repeating the calls that the journal of a
// study holds gives the same state again, which is how a study is resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/search.h"
#include "kolo/tune/options.h"
#include "tune/trial/ruling.h"

namespace kolo::tune {

class Steering {
 public:
  /// Throws invalid_argument for options that contradict each other.
  explicit Steering(const Options& options);

  [[nodiscard]] const search::Space& space() const noexcept { return *space_; }
  [[nodiscard]] const std::vector<Objective>& objectives() const noexcept { return objectives_; }

  /// Point and configuration of a new trial. Nothing: not now, or never, if exhausted().
  struct Proposal {
    search::Point point;
    Value config;
  };
  std::optional<Proposal> ask(std::int64_t number);
  /// Repeats an ask that the journal holds.
  void recall(std::int64_t number, search::Point point, const Value& config);
  [[nodiscard]] bool exhausted() const;
  /// The study has more trials than planned: num_samples has grown, and nothing else has changed.
  void extend(const Options& options);
  [[nodiscard]] std::int64_t asked() const noexcept { return asked_; }
  /// The study wants more trials, and the sampler may have some.
  [[nodiscard]] bool wants_more() const;
  /// Whether trials are the combinations of a grid, one after the other.
  [[nodiscard]] bool counts_through_grid() const noexcept { return counts_through_grid_; }
  /// How many trials there will be, where that is known.
  [[nodiscard]] std::optional<std::int64_t> planned() const;
  /// Whether the scheduler looks at configurations, and recall() needs them.
  [[nodiscard]] bool needs_configs() const noexcept { return needs_configs_; }
  /// Whether trials may go on from the checkpoints of others.
  [[nodiscard]] bool clones_trials() const noexcept { return needs_configs_; }
  /// Throws corruption if the point that is stored of a trial is none of the space.
  void check_stored(std::int64_t number, const search::Point& point) const;
  /// The configuration that an ask made of a point.
  [[nodiscard]] Value config_of(std::int64_t number, const search::Point& point) const;
  /// All trials are to be asked for at the beginning, though most of them wait for a place.
  [[nodiscard]] bool wants_all_trials() const {
    return scheduler_->wants_all_trials() && planned().has_value();
  }
  /// The largest number of trials at once that the search allows; 0 = any.
  [[nodiscard]] std::int64_t concurrency() const noexcept { return concurrency_; }

  /// `result` is complete: the trial's metrics, training_iteration, time_total_s. Throws
  /// not_found when it lacks what is needed; nothing has changed then.
  /// `last`: the run is over, and nothing can be decided any more.
  Ruling report(std::int64_t number, const Value& result, bool others_wait, bool last);
  /// Repeats a report that the journal holds.
  Ruling replay(std::int64_t number, const Value& result, bool others_wait, Verdict verdict);

  /// Tells sampler and scheduler how a trial ended.
  void end(std::int64_t number, const search::Outcome& outcome);
  void stalled() { scheduler_->stalled(); }

  /// What the scheduler has decided about trials that wait, since the last call.
  std::vector<std::pair<std::int64_t, Ruling>> take_rulings();
  [[nodiscard]] std::optional<std::int64_t> next(std::span<const std::int64_t> waiting) const;
  [[nodiscard]] bool study_over(std::chrono::duration<double> elapsed) const;

  /// The objectives' values in a result; throws not_found or invalid_argument.
  [[nodiscard]] std::vector<double> values_of(const Value& result) const;
  /// For users: the brackets and rungs, and what the sampler does.
  [[nodiscard]] const std::string& scheduler_name() const { return scheduler_->name(); }
  [[nodiscard]] std::string scheduler_status() const;
  [[nodiscard]] std::string sampler_status() const { return sampler_->explain(); }
  [[nodiscard]] Value policy() const { return scheduler_->policy(); }

 private:
  void make_sampler(const Options& options);
  void make_scheduler(const Options& options);
  void make_stopper(const Options& options);
  void tell_sampler(std::int64_t number, const Value& result, std::span<const double> values);
  [[nodiscard]] search::Result result_for(const Value& result, bool others_wait) const;

  std::shared_ptr<const search::Space> space_;
  std::vector<Objective> objectives_;
  std::unique_ptr<search::Sampler> sampler_;
  std::unique_ptr<search::Scheduler> scheduler_;
  std::unique_ptr<search::Stopper> stopper_;
  std::string time_attr_;
  std::uint64_t seed_ = 0;
  std::int64_t wanted_ = -1;  // trials; -1 = as many as the sampler gives
  std::int64_t asked_ = 0;
  std::int64_t concurrency_ = 0;
  std::optional<std::int64_t> planned_variants_;  // of the grid
  bool reports_to_sampler_ = false;
  bool needs_configs_ = false;
  bool counts_through_grid_ = false;
};

}  // namespace kolo::tune

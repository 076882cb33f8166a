// Population based training: trials that run together, of which the worst copy the best.
//
// Jaderberg et al., "Population based training of neural networks", 2017, with Ray Tune's settings.
//
// Vocabulary: every perturbation_interval a trial *reports in*. Among the trials that have, the
// *upper* and the *lower* quantile are the best and the worst ceil(n · quantile_fraction), at most
// half each. A trial in the upper one saves a checkpoint; one in the lower one *exploits*: it goes
// on from the checkpoint of a random trial of the upper one, with that trial's configuration varied
// (*explored*). With `synch`, all trials of the study wait for each other at each interval and are
// then treated together.
//
// Values explored stay inside the domain that `mutations` gives them.
// Cost: O(n log n) per trial and interval.
#pragma once

#include "search/analysis/dominance.h"
#include "search/scheduler/explore.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {

class Population : public Scheduler {
 public:
  [[nodiscard]] Value policy() const override { return Value(policy_); }
  [[nodiscard]] bool wants_all_trials() const override { return synch_; }
  [[nodiscard]] bool counts_seconds() const override { return true; }

 protected:
  /// Reads the settings that the whole family shares.
  Population(std::string name, SchedulerOptions options, SettingsReader& settings);

  /// The new configuration of `target`, made from that of `source`.
  virtual Value vary(Slot target, Slot source, Random& random) = 0;
  /// A result at which the trial may be treated, before it is.
  virtual void on_report_in(Slot /*slot*/, const Result& /*result*/, double /*score*/) {}

  [[nodiscard]] const Space& mutations() const { return *options().mutations; }
  [[nodiscard]] std::vector<Slot> live() const;
  [[nodiscard]] double interval() const noexcept { return interval_; }

  void on_add(Slot slot) override;
  [[nodiscard]] bool remembers_configs() const override { return true; }
  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override;
  void on_last_result(Slot slot, const Result& result, std::span<const double> scores) override;
  void on_end(Slot slot, bool failed) override;
  void on_stalled() override;
  [[nodiscard]] std::optional<Slot> choose(std::span<const Slot> waiting) const override;

 private:
  struct Member {
    double time = 0;            // of the last result
    double iteration = 0;       // of it, for the policy
    double last_treatment = 0;  // when it reported in last
    bool scored = false;
    bool waits = false;  // with synch: for the others
    Objectives scores;
  };
  struct Quantiles {
    std::vector<Slot> upper, lower;
    std::vector<Slot> order;  // best first
  };

  [[nodiscard]] Quantiles quantiles() const;
  Decision treat(Slot slot, const Quantiles& quantiles);
  /// With synch: treats all, once the last one is there (or the others are not waited for).
  void meet(bool without_others, std::optional<Slot> reporter, Decision* mine);

  double interval_ = 0;
  double burn_in_ = 0;
  double fraction_ = 0;
  bool synch_ = false;
  double next_meeting_ = 0;
  std::uint64_t treatments_ = 0;
  std::vector<Member> members_;  // by slot
  Value::List policy_;
};

}  // namespace kolo::search

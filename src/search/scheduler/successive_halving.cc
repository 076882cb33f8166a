// Successive halving as DeepHyper's SuccessiveHalvingStopper: asynchronous, decided at once.
//
// Vocabulary: rung k is at (min_steps - 1) + rf^(rate + k). A trial that reaches a rung goes on if
// it is among the best max(1, n // rf) of the n that reached it so far, itself included, give or
// take epsilon; otherwise it stops. Nobody stops before `min_competing` others are there to compare
// with and `min_fully_completed` trials have reached max_steps.
//
// Cost per result: O(1) between rungs, a search in an OrderedValues at one.
#include <algorithm>
#include <cmath>

#include "search/scheduler/ranking.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class SuccessiveHalving final : public Scheduler {
 public:
  explicit SuccessiveHalving(SchedulerOptions given)
      : Scheduler("successive_halving", std::move(given)) {
    SettingsReader settings("scheduler successive_halving", options().settings);
    max_steps_ = settings.number("max_steps", 100, 1, 1e300);
    double min_steps = settings.number("min_steps", 1, 0, 1e300);
    factor_ = settings.number("reduction_factor", 3, 1 + 1e-6, 1e6);
    auto rate = settings.integer("min_early_stopping_rate", 0, 0, 64);
    min_competing_ = static_cast<std::size_t>(settings.integer("min_competing", 0, 0));
    min_completed_ = static_cast<std::size_t>(settings.integer("min_fully_completed", 0, 0));
    epsilon_ = settings.number("epsilon", 1e-10, 0);
    settings.done();
    for (auto k = static_cast<double>(rate); rungs_.size() < 64; ++k) {
      double budget = (min_steps - 1) + std::pow(factor_, k);
      if (!(budget < max_steps_)) break;
      rungs_.push_back({budget, {}});
    }
  }

 private:
  struct Rung {
    double budget;
    Ranking ranking;
  };

  void on_add(Slot) override { reached_.push_back(0); }

  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override {
    if (result.time >= max_steps_) {
      ++completed_;
      return {Action::stop, {.rule = "max_steps", .milestone = max_steps_}};
    }
    if (!record(slot, result.time, scores)) return {Action::proceed, {.rule = "between rungs"}};
    return judge(reached_[slot] - 1, scores);
  }

  void on_last_result(Slot slot, const Result& result, std::span<const double> scores) override {
    if (result.time >= max_steps_)
      ++completed_;
    else
      record(slot, result.time, scores);
  }

  /// Whether the trial has reached another rung.
  bool record(Slot slot, double time, std::span<const double> scores) {
    std::uint32_t& reached = reached_[slot];
    const std::uint32_t before = reached;
    while (reached < rungs_.size() && rungs_[reached].budget <= time)
      rungs_[reached++].ranking.record(scores);
    return reached != before;
  }

  Decision judge(std::uint32_t index, std::span<const double> scores) const {
    const Rung& rung = rungs_[index];
    double grade = rung.ranking.grade(scores);
    // Fronts are whole numbers: there epsilon means nothing.
    std::size_t ahead = rung.ranking.ahead(scores.size() == 1 ? grade - epsilon_ : grade);
    std::size_t among = std::max(rung.ranking.size(), ahead + 1);
    auto places = static_cast<std::size_t>(static_cast<double>(among) / factor_);
    places = std::max<std::size_t>(1, places);
    bool enough = among > min_competing_ && completed_ >= min_completed_;
    Decision decision{enough && ahead >= places ? Action::stop : Action::proceed,
                      {.rule = "rung",
                       .rung = index,
                       .milestone = rung.budget,
                       .value = grade,
                       .rank = ahead + 1,
                       .among = among}};
    if (places <= rung.ranking.size()) decision.reason.cutoff = rung.ranking.grade_at(places - 1);
    return decision;
  }

  double max_steps_ = 0;
  double factor_ = 0;
  std::size_t min_competing_ = 0;
  std::size_t min_completed_ = 0;
  double epsilon_ = 0;
  std::size_t completed_ = 0;  // reached max_steps
  std::vector<Rung> rungs_;
  std::vector<std::uint32_t> reached_;
};

}  // namespace

std::unique_ptr<Scheduler> make_successive_halving(SchedulerOptions options) {
  return std::make_unique<SuccessiveHalving>(std::move(options));
}

}  // namespace kolo::search

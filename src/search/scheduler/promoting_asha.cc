// ASHA as its paper has it: the variant that promotes.
//
// Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020, algorithm 2.
//
// Vocabulary: the *rungs* are at the *milestones* grace·rf^(k+s), s being the minimum early
// stopping rate. A trial that reaches a rung is *promotable* while it is among the best floor(n /
// rf) of the n that reached it: then it goes on at once. Otherwise it pauses, and next() promotes
// it later, when enough others have come who are worse; the highest rung is looked at first, new
// trials last.
//
// Cost: a search in an OrderedValues per rung reached; next() looks at each waiting trial once.
#include <algorithm>

#include "search/scheduler/ranking.h"
#include "search/scheduler/rungs.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class PromotingAsha final : public Scheduler {
 public:
  explicit PromotingAsha(SchedulerOptions given) : Scheduler("asha_promoting", std::move(given)) {
    SettingsReader settings("scheduler asha_promoting", options().settings);
    max_t_ = settings.number("max_t", 100, 1e-300, 1e300);
    double grace = settings.number("grace_period", 1, 1e-300, 1e300);
    factor_ = settings.number("reduction_factor", 4, 1 + 1e-6, 1e6);
    auto rate = settings.integer("min_early_stopping_rate", 0, 0, 64);
    settings.done();
    if (grace > max_t_) settings.refuse("grace_period", "must not be greater than max_t");
    for (double time : milestones(grace, factor_, max_t_, static_cast<int>(rate)))
      if (time < max_t_) rungs_.push_back({time, {}});
  }

 private:
  struct Rung {
    double milestone;
    Ranking ranking;
  };
  struct Progress {
    std::uint32_t reached = 0;  // rungs recorded at
    bool at_rung = false;       // paused there
    Objectives scores;          // at the last of them
  };

  void on_add(Slot) override { progress_.emplace_back(); }

  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override {
    Progress& progress = progress_[slot];
    if (result.time >= max_t_) {
      progress.at_rung = false;
      return {Action::stop, {.rule = "max_t", .milestone = max_t_}};
    }
    if (!record(progress, result.time, scores)) {
      progress.at_rung = false;
      return {Action::proceed, {.rule = "between rungs"}};
    }
    progress.scores.assign(scores.begin(), scores.end());
    Decision decision = judge(progress);
    progress.at_rung = decision.action == Action::pause;
    return decision;
  }

  void on_last_result(Slot slot, const Result& result, std::span<const double> scores) override {
    if (result.time < max_t_) record(progress_[slot], result.time, scores);
  }

  /// Whether the trial has reached another rung.
  bool record(Progress& progress, double time, std::span<const double> scores) {
    const std::uint32_t before = progress.reached;
    while (progress.reached < rungs_.size() && rungs_[progress.reached].milestone <= time)
      rungs_[progress.reached++].ranking.record(scores);
    return progress.reached != before;
  }

  [[nodiscard]] std::size_t places(const Rung& rung) const {
    return static_cast<std::size_t>(static_cast<double>(rung.ranking.size()) / factor_);
  }

  Decision judge(const Progress& progress) const {
    std::uint32_t index = progress.reached - 1;
    const Rung& rung = rungs_[index];
    double grade = rung.ranking.grade(progress.scores);
    std::size_t ahead = rung.ranking.ahead(grade);
    std::size_t best = places(rung);
    Decision decision{ahead < best && !std::isnan(grade) ? Action::proceed : Action::pause,
                      {.rule = "rung",
                       .rung = index,
                       .milestone = rung.milestone,
                       .value = grade,
                       .rank = ahead + 1,
                       .among = std::max(rung.ranking.size(), ahead + 1)}};
    if (best > 0) decision.reason.cutoff = rung.ranking.grade_at(best - 1);
    return decision;
  }

  std::optional<Slot> choose(std::span<const Slot> waiting) const override {
    std::optional<Slot> chosen;
    std::uint32_t highest = 0;
    std::uint64_t best_rank = 0;
    for (Slot slot : waiting) {
      const Progress& progress = progress_[slot];
      std::uint32_t height = progress.at_rung ? progress.reached : 0;
      std::uint64_t rank = 0;
      if (progress.at_rung) {
        Decision decision = judge(progress);
        if (decision.action != Action::proceed) continue;
        rank = *decision.reason.rank;
      }
      if (!chosen || height > highest || (height == highest && rank < best_rank)) {
        chosen = slot;
        highest = height;
        best_rank = rank;
      }
    }
    return chosen;
  }

  double max_t_ = 0;
  double factor_ = 0;
  std::vector<Rung> rungs_;  // from the lowest up; none at max_t, where trials end anyway
  std::vector<Progress> progress_;
};

}  // namespace

std::unique_ptr<Scheduler> make_promoting_asha(SchedulerOptions options) {
  return std::make_unique<PromotingAsha>(std::move(options));
}

}  // namespace kolo::search

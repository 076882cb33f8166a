// ASHA as Ray Tune's AsyncHyperBandScheduler: the variant that stops.
//
// Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020, in the form that
// Tune gave it: no trial waits and none is promoted; one that is among the worse at a rung stops.
//
// Vocabulary: a *bracket* s has *rungs* at the *milestones* grace·rf^(k+s); a trial belongs to one
// bracket, drawn with softmax probabilities over the brackets' numbers of rungs. A result at time t
// counts at the highest milestone <= t that this trial has not been recorded at. The *cut-off* is
// the 1/rf quantile (best first) of what others had recorded there before.
//
// Which others came before depends on how fast trials run. With `in_order` it does not: a trial at
// a rung *waits* until every older trial of its bracket was recorded there or has ended, and is
// judged by those alone. So a study decides the same however its trials are interrupted.
//
// Cost per result: O(1) between milestones, a search in an OrderedValues at one; in order, a look
// at all older trials. Results that are not finite are stopped at the first rung where there is
// anything to compare with.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kolo/random.h"
#include "search/scheduler/ranking.h"
#include "search/scheduler/rungs.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

struct Rung {
  double milestone = 0;
  Ranking ranking;
};

class Asha final : public Scheduler {
 public:
  explicit Asha(SchedulerOptions given) : Scheduler("asha", std::move(given)) {
    SettingsReader settings("scheduler asha", options().settings);
    max_t_ = settings.number("max_t", 100, 1e-300, 1e300);
    double grace = settings.number("grace_period", 1, 1e-300, 1e300);
    factor_ = settings.number("reduction_factor", 4, 1 + 1e-6, 1e6);
    auto brackets = settings.integer("brackets", 1, 1, 64);
    stop_last_ = settings.truth("stop_last_trials", true);
    in_order_ = settings.truth("in_order", false);
    settings.done();
    if (grace > max_t_) settings.refuse("grace_period", "must not be greater than max_t");

    for (int s = 0; s < brackets; ++s) {
      auto& rungs = brackets_.emplace_back();  // without rungs its trials run to their end
      for (double time : milestones(grace, factor_, max_t_, s)) rungs.push_back({time, {}});
    }
  }

  std::string status() const override {
    std::string text = "asha";
    for (std::size_t s = 0; s < brackets_.size(); ++s) {
      text += fmt::format("\nbracket {}:", s);
      for (const auto& rung : brackets_[s]) {
        auto cutoff = rung.ranking.quantile(1 / factor_);
        text += fmt::format(" {:.5g} ({} trial{}{})", rung.milestone, rung.ranking.size(),
                            rung.ranking.size() == 1 ? "" : "s",
                            cutoff ? fmt::format(", cut-off {:.5g}", as_reported(*cutoff)) : "");
      }
    }
    return text;
  }

 private:
  struct Progress {
    std::uint32_t bracket = 0;
    std::uint64_t recorded = 0;               // one bit per rung
    std::optional<std::uint32_t> waits_at{};  // this rung, for older trials
    Objectives scores{};                      // of a trial that waits
  };

  void on_add(Slot slot) override { progress_.push_back({draw_bracket(slot), 0}); }

  std::uint32_t draw_bracket(Slot slot) const {
    if (brackets_.size() == 1) return 0;
    // The first bracket has the most rungs; exp(difference) cannot overflow.
    std::vector<double> weights;
    double total = 0;
    for (const auto& rungs : brackets_)
      total += weights.emplace_back(
          std::exp(static_cast<double>(rungs.size()) - static_cast<double>(brackets_[0].size())));
    double left = Random(options().seed).stream("asha bracket", slot).uniform() * total;
    for (std::uint32_t s = 0; s + 1 < weights.size(); ++s)
      if ((left -= weights[s]) < 0) return s;
    return static_cast<std::uint32_t>(weights.size() - 1);
  }

  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override {
    Progress& progress = progress_[slot];
    progress.waits_at.reset();
    if (result.time >= max_t_)
      return {stop_last_ ? Action::stop : Action::proceed,
              {.rule = "max_t", .bracket = progress.bracket, .milestone = max_t_}};

    const auto index = open_rung(progress, result.time);
    if (!index) return {Action::proceed, {.rule = "between rungs"}};
    if (in_order_ && older_are_missing(slot, *index)) {
      progress.waits_at = index;
      progress.scores.assign(scores.begin(), scores.end());
      return {Action::pause,
              {.rule = "in order",
               .bracket = progress.bracket,
               .rung = index,
               .milestone = brackets_[progress.bracket][*index].milestone}};
    }
    return judge(brackets_[progress.bracket][*index], *index, progress, scores);
  }

  void on_last_result(Slot slot, const Result& result, std::span<const double> scores) override {
    Progress& progress = progress_[slot];
    progress.waits_at.reset();
    if (const auto index = open_rung(progress, result.time))
      static_cast<void>(judge(brackets_[progress.bracket][*index], *index, progress, scores));
  }

  void on_end(Slot slot, bool /*failed*/) override {
    progress_[slot].waits_at.reset();
    wake_waiting();
  }

  /// An older trial of the bracket will come to this rung, as far as is known.
  [[nodiscard]] bool older_are_missing(Slot slot, std::uint32_t rung) const {
    for (Slot older = 0; older < slot; ++older) {
      const Progress& other = progress_[older];
      if (other.bracket != progress_[slot].bracket || entry(older).ended || entry(older).stopped)
        continue;
      if ((other.recorded >> rung) == 0) return true;
    }
    return false;
  }

  /// Those who are next have their turn, the oldest first: each may be what another waits for.
  void wake_waiting() {
    if (!in_order_) return;
    for (Slot slot = 0; slot < progress_.size(); ++slot) {
      Progress& progress = progress_[slot];
      if (!progress.waits_at || older_are_missing(slot, *progress.waits_at)) continue;
      const std::uint32_t index = *progress.waits_at;
      progress.waits_at.reset();
      announce(slot,
               judge_now(brackets_[progress.bracket][index], index, progress, progress.scores));
    }
  }

  [[nodiscard]] std::optional<Slot> choose(std::span<const Slot> waiting) const override {
    for (const Slot slot : waiting)
      if (!progress_[slot].waits_at) return slot;
    return std::nullopt;
  }

  /// The highest rung at this time that the trial was not recorded at.
  [[nodiscard]] std::optional<std::uint32_t> open_rung(const Progress& progress,
                                                       double time) const {
    const auto& rungs = brackets_[progress.bracket];
    std::size_t reached = 0;
    while (reached < rungs.size() && rungs[reached].milestone <= time) ++reached;
    std::uint64_t below = reached == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << reached) - 1;
    std::uint64_t open = below & ~progress.recorded;
    if (open == 0) return std::nullopt;
    return static_cast<std::uint32_t>(std::bit_width(open) - 1);
  }

  Decision judge(Rung& rung, std::uint32_t index, Progress& progress,
                 std::span<const double> scores) {
    const Decision decision = judge_now(rung, index, progress, scores);
    wake_waiting();
    return decision;
  }

  Decision judge_now(Rung& rung, std::uint32_t index, Progress& progress,
                     std::span<const double> scores) {
    double grade = rung.ranking.grade(scores);
    auto cutoff = rung.ranking.quantile(1 / factor_);
    std::uint64_t rank = rung.ranking.ahead(grade) + 1;
    bool stop = cutoff && !(grade <= *cutoff);
    progress.recorded |= std::uint64_t{1} << index;
    rung.ranking.record(scores);

    Decision decision{stop ? Action::stop : Action::proceed,
                      {.rule = "rung",
                       .bracket = progress.bracket,
                       .rung = index,
                       .milestone = rung.milestone,
                       .value = grade,
                       .cutoff = cutoff,
                       .rank = rank,
                       .among = std::max<std::uint64_t>(rung.ranking.size(), rank)}};
    return decision;
  }

  double max_t_ = 0;
  double factor_ = 0;
  bool stop_last_ = true;
  bool in_order_ = false;
  std::vector<std::vector<Rung>> brackets_;  // rungs from the lowest up
  std::vector<Progress> progress_;           // by slot
};

}  // namespace

std::unique_ptr<Scheduler> make_asha(SchedulerOptions options) {
  return std::make_unique<Asha>(std::move(options));
}

}  // namespace kolo::search

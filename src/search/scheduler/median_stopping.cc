// The median stopping rule of Vizier (Golovin et al., KDD 2017), with Ray Tune's settings.
//
// At a result at time t >= grace_period: the *others* are the trials, also ended ones, that have a
// result at t or later; each counts with its *running mean*, that of its results in [grace_period,
// t]. With at least min_samples_required others, the trial stops (pauses, without hard_stop) when
// its best result so far is strictly worse than the median of the running means. With several
// objectives it must be worse than the median in all of them.
//
// With fewer others, the trial gives way if it has run for min_time_slice and others wait.
//
// Cost per result: O(trials) for the median, O(log results) for each mean (prefix sums).
#include <algorithm>
#include <cmath>

#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

/// The results of one trial for one objective: finite ones count, others do not.
struct Track {
  std::vector<double> sums{0};           // of the finite scores, in the order of results
  std::vector<std::uint32_t> counts{0};  // how many those are
  double best = std::nan("");

  void add(double score, bool counted) {
    bool finite = !std::isnan(score);
    sums.push_back(sums.back() + (finite && counted ? score : 0));
    counts.push_back(counts.back() + (finite && counted ? 1 : 0));
    if (finite && !(score >= best)) best = score;
  }
};

class MedianStopping final : public Scheduler {
 public:
  explicit MedianStopping(SchedulerOptions given)
      : Scheduler("median_stopping_rule", std::move(given)) {
    SettingsReader settings("scheduler median_stopping_rule", options().settings);
    grace_ = settings.number("grace_period", 60, 0);
    min_samples_ = static_cast<std::size_t>(settings.integer("min_samples_required", 3, 1));
    min_time_slice_ = settings.number("min_time_slice", 0, 0);
    hard_stop_ = settings.truth("hard_stop", true);
    settings.done();
  }
  [[nodiscard]] bool counts_seconds() const override { return true; }

 private:
  struct History {
    std::vector<double> times;  // ascending
    std::vector<Track> tracks;  // one per objective
    double last_pause = 0;
    bool spared = false;  // was paused in place of a stop: runs to its end
  };

  void on_add(Slot) override {
    histories_.push_back({{}, std::vector<Track>(objectives()), 0, false});
  }

  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override {
    History& mine = histories_[slot];
    const double time = record(mine, result.time, scores);
    if (mine.spared) return {Action::proceed, {.rule = "paused before"}};
    if (time < grace_) return {Action::proceed, {.rule = "grace period", .milestone = grace_}};

    std::vector<Slot> others;
    for (Slot other = 0; other < histories_.size(); ++other)
      if (other != slot && !histories_[other].times.empty() &&
          histories_[other].times.back() >= time)
        others.push_back(other);
    if (others.size() < min_samples_) return give_way(mine, result, time, others.size());
    return judge(mine, time, others);
  }

  void on_last_result(Slot slot, const Result& result, std::span<const double> scores) override {
    record(histories_[slot], result.time, scores);
  }

  /// Returns the time at which the result counts: after a restore time goes back, and results then
  /// count at the time already reached.
  double record(History& mine, double time, std::span<const double> scores) const {
    if (!mine.times.empty()) time = std::max(time, mine.times.back());
    mine.times.push_back(time);
    for (std::size_t k = 0; k < scores.size(); ++k) mine.tracks[k].add(scores[k], time >= grace_);
    return time;
  }

  Decision give_way(History& mine, const Result& result, double time, std::size_t others) const {
    bool pause = result.others_wait && time - mine.last_pause > min_time_slice_;
    if (pause) mine.last_pause = time;
    return {pause ? Action::pause : Action::proceed,
            {.rule = "too few to compare with", .milestone = time, .among = others + 1}};
  }

  Decision judge(History& mine, double time, const std::vector<Slot>& others) const {
    bool worse = true;
    Reason reason{.rule = "median", .milestone = time, .among = others.size() + 1};
    for (std::size_t k = 0; k < objectives(); ++k) {
      std::vector<double> means;
      for (Slot other : others) {
        double mean = running_mean(histories_[other], k, time);
        if (!std::isnan(mean)) means.push_back(mean);
      }
      if (means.empty()) return {Action::proceed, reason};
      std::sort(means.begin(), means.end());
      double median = (means[(means.size() - 1) / 2] + means[means.size() / 2]) / 2;
      double best = mine.tracks[k].best;
      worse = worse && !(best <= median);
      if (objectives() > 1) continue;
      reason.value = best;
      reason.cutoff = median;
      reason.rank = 1 + static_cast<std::uint64_t>(
                            std::isnan(best) ? means.size()
                                             : std::lower_bound(means.begin(), means.end(), best) -
                                                   means.begin());
    }
    if (!worse) return {Action::proceed, reason};
    mine.spared = !hard_stop_;
    return {hard_stop_ ? Action::stop : Action::pause, reason};
  }

  static double running_mean(const History& history, std::size_t objective, double time) {
    auto end = std::upper_bound(history.times.begin(), history.times.end(), time);
    auto index = static_cast<std::size_t>(end - history.times.begin());
    const Track& track = history.tracks[objective];
    return track.sums[index] / track.counts[index];  // 0 / 0 = NaN: no result to count
  }

  double grace_ = 0;
  std::size_t min_samples_ = 0;
  double min_time_slice_ = 0;
  bool hard_stop_ = true;
  std::vector<History> histories_;  // by slot
};

}  // namespace

std::unique_ptr<Scheduler> make_median_stopping(SchedulerOptions options) {
  return std::make_unique<MedianStopping>(std::move(options));
}

}  // namespace kolo::search

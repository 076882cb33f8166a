// HyperBand: brackets of trials that are halved together. Also in the order that BOHB wants.
//
// Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization", JMLR 2018;
// Falkner et al., "BOHB", ICML 2018.
//
// Vocabulary: bracket s has room for n = ceil((s_max + 1) / (s + 1) · eta^s) trials and its first
// *milestone* at r = max_t · eta^-s, not below min_t. A trial that reaches the milestone pauses
// until all of its bracket have; then the best ceil(n / eta) go on to the milestone min(r · eta,
// max_t) and the others stop. A *band* is one bracket of each s. New trials fill one bracket after
// the other: from s = 0 upward, or from s_max downward for BOHB, whose model learns from many short
// trials first.
//
// A bracket that is not full waits for more trials until stalled() closes it; it is then halved as
// if it had been planned for those it has, and keeps ceil(live / eta) of them. Trials that end or
// fail leave their bracket. Where max_t is no power of eta, the s whose first milestone would be
// below min_t is left out, as in Tune.
//
// Cost: a result costs O(members of its bracket) when it reaches a milestone, O(1) otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "search/analysis/dominance.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class HyperBand final : public Scheduler {
 public:
  enum class Order { upward, downward };

  HyperBand(std::string name, Order order, SchedulerOptions given)
      : Scheduler(std::move(name), std::move(given)), order_(order) {
    SettingsReader settings("scheduler " + this->name(), options().settings);
    max_t_ = settings.number("max_t", 81, 1e-300, 1e300);
    min_t_ = settings.number("min_t", 1, 1e-300, max_t_);
    eta_ = settings.number("reduction_factor", 3, 1 + 1e-6, 1e6);
    stop_last_ = settings.truth("stop_last_trials", true);
    settings.done();
    s_max_ = static_cast<int>(std::lround(std::log(max_t_ / min_t_) / std::log(eta_)));
    if (s_max_ > 60 || std::pow(eta_, s_max_) > 1e9)
      settings.refuse("max_t",
                      "with this reduction factor a bracket would have more than 10^9 trials");
    last_s_ = s_max_;
    while (last_s_ > 0 && max_t_ / std::pow(eta_, last_s_) * (1 + 1e-12) < min_t_) --last_s_;
  }

  std::string status() const override {
    std::string text = name();
    for (std::size_t i = 0; i < brackets_.size(); ++i) {
      const Bracket& bracket = brackets_[i];
      text += fmt::format("\nbracket {} (s = {}): {} of {} trials, {} live, milestone {:.5g}", i,
                          bracket.s, bracket.added, bracket.capacity, bracket.live.size(),
                          bracket.milestone);
    }
    return text;
  }

 private:
  struct Bracket {
    int s = 0;
    std::size_t capacity = 0;
    std::size_t added = 0;
    std::size_t survivors = 0;  // how many the bracket is planned for at this rung
    double milestone = 0;
    double planned_time = 0;  // of all its trials together, for choose()
    double used_time = 0;
    std::uint32_t rung = 0;
    bool closed = false;  // takes no more trials
    std::vector<Slot> live;
  };
  struct Member {
    std::size_t bracket = 0;
    double time = 0;
    bool waits = false;  // at the milestone
    Objectives scores;   // of the last result
  };

  Bracket make_bracket() const {
    auto turn = static_cast<int>(brackets_.size() % static_cast<std::size_t>(last_s_ + 1));
    Bracket bracket;
    bracket.s = order_ == Order::upward ? turn : last_s_ - turn;
    double wide = std::pow(eta_, bracket.s);
    double count = std::ceil((s_max_ + 1.0) / (bracket.s + 1.0) * wide - 1e-9);
    bracket.capacity = bracket.survivors = static_cast<std::size_t>(count);
    bracket.milestone = std::max(min_t_, std::floor(max_t_ / wide * (1 + 1e-12)));
    double from = 0;
    for (double to = bracket.milestone;; to = std::min(to * eta_, max_t_)) {
      bracket.planned_time += count * (to - from);
      if (to >= max_t_) break;
      from = to;
      count = std::ceil(count / eta_ - 1e-9);
    }
    return bracket;
  }

  void on_add(Slot slot) override {
    if (brackets_.empty() || brackets_.back().closed) brackets_.push_back(make_bracket());
    Bracket& bracket = brackets_.back();
    bracket.live.push_back(slot);
    bracket.closed = ++bracket.added == bracket.capacity;
    members_.push_back({brackets_.size() - 1, 0, false, {}});
  }

  Decision on_result(Slot slot, const Result& result, std::span<const double> scores) override {
    Member& member = members_[slot];
    Bracket& bracket = brackets_[member.bracket];
    bracket.used_time += std::max(0.0, result.time - member.time);
    member.time = std::max(member.time, result.time);
    member.scores.assign(scores.begin(), scores.end());
    if (result.time >= max_t_ && stop_last_) {
      leave(slot);
      return {Action::stop, reason(slot, "max_t")};
    }
    if (bracket.milestone >= max_t_ && result.time >= max_t_)
      return {Action::proceed, reason(slot, "max_t")};
    if (result.time < bracket.milestone) {
      member.waits = false;
      return {Action::proceed, reason(slot, "below the milestone")};
    }
    member.waits = true;
    Decision mine{Action::pause, reason(slot, "waits for its bracket")};
    halve_if_ready(member.bracket, slot, &mine);
    return mine;
  }

  void on_end(Slot slot, bool) override { leave(slot); }

  void on_stalled() override {
    for (std::size_t i = 0; i < brackets_.size(); ++i) {
      Bracket& bracket = brackets_[i];
      if (!bracket.closed) {
        bracket.closed = true;
        bracket.survivors = std::max<std::size_t>(1, bracket.live.size());
      }
      halve_if_ready(i, {}, nullptr);
    }
  }

  void leave(Slot slot) {
    Bracket& bracket = brackets_[members_[slot].bracket];
    if (std::erase(bracket.live, slot) > 0) halve_if_ready(members_[slot].bracket, {}, nullptr);
  }

  /// Halves, and halves again if the survivors are beyond the next milestone too. The trial that
  /// reports gets its decision through `mine`, the others by announcement.
  void halve_if_ready(std::size_t index, std::optional<Slot> reporter, Decision* mine) {
    Bracket& bracket = brackets_[index];
    auto waits = [&](Slot slot) { return members_[slot].waits; };
    while (bracket.closed && !bracket.live.empty() && bracket.milestone < max_t_ &&
           std::all_of(bracket.live.begin(), bracket.live.end(), waits))
      halve(bracket, reporter, mine);
  }

  void halve(Bracket& bracket, std::optional<Slot> reporter, Decision* mine) {
    std::vector<Objectives> scores;
    for (Slot slot : bracket.live) scores.push_back(members_[slot].scores);
    auto order = best_first(scores);
    double planned = std::ceil(static_cast<double>(bracket.survivors) / eta_ - 1e-9);
    std::size_t keep = std::min(static_cast<std::size_t>(planned), order.size());

    std::vector<Slot> survivors;
    double next = std::min(bracket.milestone * eta_, max_t_);
    for (std::size_t place = 0; place < order.size(); ++place) {
      Slot slot = bracket.live[order[place]];
      Reason why = reason(slot, "halving");
      why.rank = place + 1;
      why.among = order.size();
      if (objectives() == 1) {
        why.value = members_[slot].scores[0];
        why.cutoff = scores[order[keep - 1]][0];
      }
      bool stays = place < keep;
      bool may_run = stays && (members_[slot].time < next || (next >= max_t_ && !stop_last_));
      members_[slot].waits = stays && !may_run;
      if (stays) survivors.push_back(slot);
      Decision decision{may_run ? Action::proceed : stays ? Action::pause : Action::stop, why};
      if (reporter == slot)
        *mine = decision;
      else if (decision.action != Action::pause)
        announce(slot, decision);
    }
    bracket.live = std::move(survivors);
    bracket.survivors = static_cast<std::size_t>(planned);
    bracket.milestone = next;
    ++bracket.rung;
  }

  Reason reason(Slot slot, std::string_view rule) const {
    const Bracket& bracket = brackets_[members_[slot].bracket];
    return {.rule = rule,
            .bracket = static_cast<std::uint32_t>(members_[slot].bracket),
            .rung = bracket.rung,
            .milestone = bracket.milestone};
  }

  /// The bracket that is least far, the oldest of equals; in it, the first that waits.
  std::optional<Slot> choose(std::span<const Slot> waiting) const override {
    std::optional<Slot> chosen;
    double least = 0;
    for (Slot slot : waiting) {
      if (members_[slot].waits) continue;
      const Bracket& bracket = brackets_[members_[slot].bracket];
      double done = bracket.used_time / bracket.planned_time;
      if (!chosen || done < least ||
          (done == least && members_[slot].bracket < members_[*chosen].bracket)) {
        chosen = slot;
        least = done;
      }
    }
    return chosen;
  }

  Order order_;
  double max_t_ = 0;
  double min_t_ = 0;
  double eta_ = 0;
  bool stop_last_ = true;
  int s_max_ = 0;   // of the formula for the sizes of brackets
  int last_s_ = 0;  // of the widest bracket
  std::vector<Bracket> brackets_;
  std::vector<Member> members_;  // by slot
};

}  // namespace

std::unique_ptr<Scheduler> make_hyperband(SchedulerOptions options) {
  return std::make_unique<HyperBand>("hyperband", HyperBand::Order::upward, std::move(options));
}

std::unique_ptr<Scheduler> make_hyperband_for_bohb(SchedulerOptions options) {
  return std::make_unique<HyperBand>("hb_bohb", HyperBand::Order::downward, std::move(options));
}

}  // namespace kolo::search

// Algorithms that decide, as results arrive, which trials continue, stop, pause, or start again
// from the state of another.
//
//   auto scheduler = make_scheduler("asha", {.settings = {{"max_t", 81}}});
//   scheduler->add(id, config);
//   Decision decision = scheduler->result(id, {.time = 3, .values = {0.41}});
//
// Time is whatever the caller counts in (epochs, seconds); there is no clock here. Replay: what a
// scheduler answers depends on its options and on the sequence of calls to add, result, complete,
// fail and stalled alone, so a study that repeats these calls from its history gets the same
// scheduler back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kolo/search/space.h"
#include "kolo/search/trial.h"
#include "kolo/search/trial_places.h"
#include "kolo/search/value.h"

namespace kolo::search {

enum class Action {
  proceed,  ///< go on (of a paused trial: may run again)
  stop,     ///< end the trial; the caller still calls complete() or fail()
  pause,    ///< save a checkpoint and give the place to another
  clone,    ///< go on from the checkpoint of `source` with the configuration `config`
};

std::string_view to_string(Action action) noexcept;

/// Why, as data. What does not apply is absent.
struct Reason {
  /// The rule that spoke: "max_t", "rung", "halving", "median", "exploit" …; lives for ever.
  std::string_view rule;
  std::optional<std::uint32_t> bracket{};
  std::optional<std::uint32_t> rung{};  ///< 0 is the lowest
  std::optional<double> milestone{};    ///< the time of the rung
  /// What the trial was judged by: its metric or, with several objectives, its front (0 is best).
  std::optional<double> value{};
  std::optional<double> cutoff{};        ///< what `value` was compared with
  std::optional<std::uint64_t> rank{};   ///< 1 is best
  std::optional<std::uint64_t> among{};  ///< how many were ranked, this one included

  /// "rung 1 at 4: 0.83 is worse than the cut-off 0.61, rank 9 of 12".
  [[nodiscard]] std::string to_string() const;
};

struct Decision {
  Action action = Action::proceed;
  Reason reason{};
  std::optional<TrialId> source{};  ///< of a clone
  std::optional<Value> config{};    ///< of a clone
  /// Others may start from this trial: save a checkpoint now.
  bool save = false;
};

struct Result {
  double time = 0;
  std::vector<double> values;  ///< one per objective; what is not finite is worse than anything
  /// Other trials wait for a place to run (some schedulers then take turns).
  bool others_wait = false;
  /// How many results the trial has reported, for policies, which repeat what happened by it;
  /// absent: its time.
  std::optional<double> iteration{};
};

struct SchedulerOptions {
  std::vector<Direction> directions{Direction::minimize};  ///< one per objective
  std::uint64_t seed = 0;
  /// What population based training may change, and within which bounds. Others ignore it.
  std::shared_ptr<const Space> mutations{};
  /// Called last on each configuration that `pbt` has varied (Tune's custom_explore_fn); what it
  /// returns is used as it is.
  std::function<Value(Value config)> explore{};
  /// Of the scheduler, by name; docs/search.md lists them. An unknown one is an error.
  std::map<std::string, Value> settings{};
};

/// Not thread-safe. Calls are checked here; what a scheduler does is behind the protected
/// functions.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// A new trial. Throws already_exists.
  void add(TrialId id, Value config = {});

  /// A result of a trial, and what to do with it. A trial that was told to stop and still reports
  /// is told so again. A trial that goes back in time (restored from a checkpoint) is fine.
  /// Throws not_found (never added), failed_precondition (ended) or invalid_argument (time not
  /// finite, wrong number of values); the scheduler is then as it was before the call.
  Decision result(TrialId id, const Result& result);

  /// The last result of a trial that ends by itself or by a rule of the study. Others are judged by
  /// it as by any other result, but nothing is decided. Throws as result() does.
  void last_result(TrialId id, const Result& result);

  /// The trial has ended, or broke down. Throws not_found or failed_precondition.
  void complete(TrialId id);
  void fail(TrialId id);

  /// Nothing runs and nothing new can start: those who wait for more company go on without it.
  void stalled();

  /// Which of the trials that wait for a place (new or paused) should run; none if all of them wait
  /// for others. Changes nothing. Throws not_found for an unknown trial.
  [[nodiscard]] std::optional<TrialId> next(std::span<const TrialId> waiting) const;

  /// What was decided about paused trials since the last call: proceed (may run again), stop, or
  /// clone. Taking them or not does not influence later answers.
  std::vector<std::pair<TrialId, Decision>> take_decisions();

  /// Its settings are in seconds of running unless the study says otherwise (Tune's time_attr);
  /// else in iterations.
  [[nodiscard]] virtual bool counts_seconds() const { return false; }
  /// All trials of the study are wanted from the beginning, even if most of them have to wait for a
  /// place.
  [[nodiscard]] virtual bool wants_all_trials() const { return false; }

  /// The configuration that the trial has now: what add() was given, completed where the scheduler
  /// varies more than that, or what the last clone made of it. Throws not_found, also when the
  /// trial has ended and the scheduler has forgotten it.
  [[nodiscard]] const Value& config(TrialId id) const;
  /// What a population did, oldest first: [target, source, time of target, time of source,
  /// configuration of the source, new configuration]. This is what follow_policy reads.
  [[nodiscard]] virtual Value policy() const { return Value(Value::List{}); }
  /// One line per bracket or the like: what the scheduler has seen, for people.
  [[nodiscard]] virtual std::string status() const { return name_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const SchedulerOptions& options() const noexcept { return options_; }

 protected:
  /// The number of a trial in the order of add.
  using Slot = std::uint32_t;

  /// What the base knows of a trial.
  struct Entry {
    TrialId id{};
    bool ended = false;
    bool stopped = false;  ///< was told to
  };

  Scheduler(std::string name, SchedulerOptions options);

  virtual void on_add(Slot /*slot*/) {}
  /// `scores`: the values, all to be minimised; NaN stands for everything that is not finite.
  /// Numbers in the reason's value and cutoff have the scores' sign; the base turns them.
  virtual Decision on_result(Slot slot, const Result& result, std::span<const double> scores) = 0;
  /// See last_result(). Only schedulers that compare trials with ended ones need it.
  virtual void on_last_result(Slot /*slot*/, const Result& /*result*/,
                              std::span<const double> /*scores*/) {}
  virtual void on_end(Slot /*slot*/, bool /*failed*/) {}
  virtual void on_stalled() {}
  /// `waiting` is not empty. The first one unless overridden.
  [[nodiscard]] virtual std::optional<Slot> choose(std::span<const Slot> waiting) const;

  /// For take_decisions().
  void announce(Slot slot, Decision decision);

  [[nodiscard]] const Entry& entry(Slot slot) const { return entries_[slot]; }
  /// For on_add().
  void set_config(Slot slot, Value config) { configs_.insert_or_assign(slot, std::move(config)); }
  /// Throws not_found when the trial has ended, unless remembers_configs().
  [[nodiscard]] const Value& config_of(Slot slot) const;
  /// Whether configurations are looked at when their trials have ended. They are large.
  [[nodiscard]] virtual bool remembers_configs() const { return false; }
  [[nodiscard]] std::size_t trials() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t objectives() const noexcept { return options_.directions.size(); }
  /// A score with the sign that the metric has.
  [[nodiscard]] double as_reported(double score) const noexcept {
    const bool is_turned = objectives() == 1 && options_.directions[0] == Direction::maximize;
    return is_turned ? 0 - score : score;  // not -score: no negative zero in front of users
  }
  /// How many results there were, this one included.
  [[nodiscard]] std::uint64_t results() const noexcept { return results_; }

 private:
  Slot slot_of(TrialId id, const char* what) const;
  /// Checks a result and writes its scores into scores_.
  Slot take(TrialId id, const Result& result);
  void end(TrialId id, bool failed, const char* what);
  /// Turns signs and remembers.
  void settle(Slot slot, Decision& decision);

  std::string name_;
  SchedulerOptions options_;
  std::vector<Entry> entries_;
  std::unordered_map<Slot, Value> configs_;
  TrialPlaces slots_;
  std::vector<std::pair<TrialId, Decision>> announced_;
  std::vector<double> scores_;  // scratch
  std::uint64_t results_ = 0;
};

/// The configurations that led to one trial of a population, with the times at which they began.
struct Schedule {
  Value initial;
  std::vector<std::pair<double, Value>> changes;  ///< ascending in time
};

/// Follows the chain of clones that ends in `last` back to its beginning. Throws invalid_argument
/// for a policy of another form, not_found when `last` was never changed.
Schedule follow_policy(const Value& policy, TrialId last);

struct SchedulerInfo {
  std::string_view name;
  std::string_view summary;
};

/// For `kolo list schedulers`.
std::vector<SchedulerInfo> schedulers();

/// Ray Tune's names (async_hyperband, medianstopping …) are understood too. Throws not_found for an
/// unknown name, invalid_argument for settings that make no sense, unsupported where a scheduler
/// knows one objective only.
std::unique_ptr<Scheduler> make_scheduler(std::string_view name, SchedulerOptions options = {});

}  // namespace kolo::search

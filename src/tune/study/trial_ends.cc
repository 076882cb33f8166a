// A trial with a run ends in two halves. want_end() and tell_end() note its fate and have the run
// asked to end; when the run is over, follow_fate() does what the fate says: it records an outcome,
// lets the trial wait, makes it a copy of another one, or has it start again. An end is told to the
// search, whose answers may concern other trials (apply_rulings).
#include "tune/study/trial_ends.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.h"
#include "base/log.h"
#include "base/text_table.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

/// In letters: programs may say far more, and nobody reads it.
constexpr std::size_t kLongestError = 8192;

}  // namespace

void TrialEnds::want_end(StudyTrial& trial, Fate fate, const std::string& reason) {
  if (!has_run(trial.phase)) {
    if (fate != Fate::dropped) end(trial, fate, reason);
    return;
  }
  if (trial.phase == TrialPhase::stopping || trial.phase == TrialPhase::ending) {
    if (!trial.kill_at) trial.kill_at = state_.end_of_grace();
    return;
  }
  const bool held = trial.phase == TrialPhase::held;
  if (held) state_.actions.answer(trial.run_id(), {Reply::stop});
  // A run that is stopped from outside may still make the report it works on.
  const bool may_report = !held && (fate == Fate::done || fate == Fate::dropped);
  state_.trials.set_status(trial, may_report ? TrialPhase::stopping : TrialPhase::ending);
  trial.fate = fate;
  trial.fate_reason = reason;
  state_.actions.stop(trial.run_id());
  trial.kill_at = state_.end_of_grace();
}

void TrialEnds::tell_end(StudyTrial& trial, Fate fate, const std::string& reason) {
  state_.trials.set_status(trial, TrialPhase::ending);
  trial.fate = fate;
  trial.fate_reason = reason;
  // A checkpoint takes as long as it takes; the grace time begins when it is there.
  if (!trial.saving) trial.kill_at = state_.end_of_grace();
}

void TrialEnds::saved(StudyTrial& trial) {
  if (!std::exchange(trial.saving, false)) return;
  if (trial.phase == TrialPhase::ending && !trial.kill_at) trial.kill_at = state_.end_of_grace();
  for (auto* other : state_.trials.live_list())
    if (other->clone && !has_run(other->phase) && other->clone->source == trial.record.number)
      become_copy(*other, Ruling(*other->clone));
}

void TrialEnds::follow_fate(StudyTrial& trial, const std::string& error) {
  const auto& objectives = state_.steering.objectives();
  switch (trial.fate) {
    case Fate::pruned:
    case Fate::done: end(trial, trial.fate, trial.fate_reason); return;
    case Fate::failed: fail_run(trial, trial.fate_reason, /*may_restart=*/true); return;
    case Fate::lost: fail_run(trial, trial.fate_reason, /*may_restart=*/false); return;
    case Fate::dropped:
      wait_as(trial, TrialPhase::pending);
      trial.repeat_until = trial.record.iteration;
      return;
    case Fate::paused:
      if (!error.empty()) break;
      wait_as(trial, TrialPhase::paused);
      trial.repeat_until = trial.record.iteration;
      state_.journal.event("pause", trial.record.number, trial.fate_reason);
      return;
    case Fate::cloned:
      wait_as(trial, TrialPhase::paused);
      become_copy(trial, Ruling(trial.clone.value()));
      return;
    case Fate::open: break;
  }
  if (!error.empty()) {
    fail_run(trial, error, /*may_restart=*/true);
  } else if (trial.values.empty() && !objectives.empty()) {
    const std::string what =
        fmt::format("it ended without reporting '{}'", objectives.front().metric);
    miss_metric(trial, what);
    fail_run(trial, what, /*may_restart=*/true);
  } else if (const auto odd = std::find_if_not(trial.values.begin(), trial.values.end(),
                                               [](double value) { return std::isfinite(value); });
             state_.needs_finite_values && odd != trial.values.end()) {
    fail_run(trial, fmt::format("F_nan: the objective is {}", *odd), /*may_restart=*/true);
  } else {
    end(trial, Fate::done, "");
  }
}

void TrialEnds::wait_as(StudyTrial& trial, TrialPhase phase) {
  state_.trials.set_status(trial, phase);
  state_.announce.trial_waits(trial);
}

void TrialEnds::remove_leftovers(const StudyTrial& trial) {
  for (auto& path : state_.trials.leftovers_of(trial)) {
    log::info("removing {}: no report refers to it", path.string());
    state_.actions.remove(std::move(path), trial.record.directory);
  }
}

void TrialEnds::miss_metric(const StudyTrial& trial, const std::string& what) {
  if (state_.trials.best() != nullptr || std::exchange(state_.has_missed_metric, true)) return;
  log::warning("trial {}: {}; no trial has had it yet", trial.id, shortened(what, kLongestError));
}

void TrialEnds::give_back(StudyTrial& trial) {
  const auto place = state_.trials.vacate(trial);
  if (!place) return;
  trial.shrinks_to.reset();
  state_.pool.give_back(*place);
  trial.record.seconds = trial.seconds_at(state_.clock.now());
}

void TrialEnds::apply_rulings() {
  for (auto& [number, ruling] : state_.steering.take_rulings()) {
    StudyTrial* found = state_.trials.find(number);
    if (found == nullptr) continue;  // ended long ago
    StudyTrial& trial = *found;
    const Fate fate = consequence_of(ruling.verdict).fate;
    const bool ends = fate == Fate::pruned || fate == Fate::done;
    if (trial.phase == TrialPhase::ending && trial.fate == Fate::paused) {
      // It still saves for its pause, and follows when its run has ended.
      if (!ends && fate != Fate::cloned) continue;
      trial.fate = fate;
      trial.fate_reason = ruling.reason;
      if (fate == Fate::cloned) trial.clone = ruling;
      continue;
    }
    if (!trial.waiting()) continue;
    if (ends) {
      want_end(trial, fate, ruling.reason);
    } else if (fate == Fate::cloned && trial.phase == TrialPhase::held) {
      trial.clone = ruling;
      want_end(trial, fate, ruling.reason);
    } else if (fate == Fate::cloned) {
      become_copy(trial, ruling);
    }
  }
}

/// While the other still saves, the trial waits for it: an older checkpoint would be another state
/// than the one that was judged.
void TrialEnds::become_copy(StudyTrial& trial, const Ruling& ruling) {
  const auto& source = state_.trials.at(ruling.source.value());
  if (source.saving && source.record.number != trial.record.number) {
    trial.clone = ruling;
    return;
  }
  trial.clone.reset();
  apply_clone(trial, ruling);
}

void TrialEnds::apply_clone(StudyTrial& trial, const Ruling& ruling) {
  const auto& source = state_.trials.at(ruling.source.value());
  trial.config = ruling.config.value_or(trial.config);
  trial.record.config = encode(trial.config);
  trial.repeat_until = 0;
  std::string from = trial.checkpoints.empty() ? "from the beginning: neither has a checkpoint"
                                               : "from its own checkpoint: the other has none";
  if (!source.checkpoints.empty()) {
    const Checkpoint best = source.checkpoints.back();  // a copy: a replay is its own source
    try {
      const auto path = clone_checkpoint(best.path, trial.record.directory, best.iteration);
      const auto seq = state_.journal.checkpoint(trial.record.number, best.iteration, path);
      trial.checkpoints.push_back({path, best.iteration, seq, std::nullopt});
      from = "from " + best.path.string();
    } catch (const Error& error) {
      from = error.message();
    }
  }
  state_.journal.event(
      "clone", trial.record.number,
      fmt::format("of trial {} ({}): {}; {}", source.id, ruling.reason, trial.record.config, from));
  state_.trials.changed(trial);
  if (state_.makes_directories) state_.announce.later([this] { write_policy(); });
}

void TrialEnds::write_policy() {
  try {
    const auto& study = state_.journal.study();
    state_.policy_files.update(state_.steering.policy(), [&study](std::int64_t number) {
      return trial_id(study.first_name, study.created, number);
    });
  } catch (const std::exception& error) {
    state_.announce.files().note_unwritten(error);
  }
}

search::Outcome TrialEnds::outcome_of(const StudyTrial& trial, Fate fate) const {
  const bool has_objectives = !state_.steering.objectives().empty();
  if (fate == Fate::failed) return search::Outcome::failed();
  if (fate != Fate::pruned && !(trial.values.empty() && has_objectives))
    return search::Outcome::complete(has_objectives ? trial.values : std::vector<double>{0});
  // Without a single report the search learns nothing from it.
  if (trial.values.empty() && trial.record.iteration == 0) return search::Outcome::failed();
  return search::Outcome::pruned(trial.values);
}

void TrialEnds::end(StudyTrial& trial, Fate fate, const std::string& reason) {
  auto& record = trial.record;
  const search::Outcome outcome = outcome_of(trial, fate);
  state_.steering.end(record.number, outcome);
  record.ended_seq = state_.journal.next_seq();
  record.ended = state_.clock.date();
  record.why = reason;
  record.outcome =
      encode(Value{{"state", static_cast<int>(outcome.state)},
                   {"values", Value::List(outcome.values.begin(), outcome.values.end())}});
  trial.fate = fate;
  state_.trials.set_status(trial,
                           fate == Fate::failed ? TrialPhase::failed : TrialPhase::terminated);
  state_.announce.trial_ended(trial);
  let_go(record.number);
  apply_rulings();
}

void TrialEnds::let_go(std::int64_t number) {
  // Others may become copies of it.
  if (state_.steering.clones_trials()) return;
  state_.announce.later([this, number] { state_.trials.let_go(number); });
}

void TrialEnds::fail_run(StudyTrial& trial, const std::string& why, bool may_restart) {
  const std::string error = shortened(why, kLongestError);
  auto& record = trial.record;
  const auto& options = state_.options;
  ++record.failures;
  record.error = error;
  state_.trials.changed(trial);
  state_.journal.event("failure", record.number, error);
  state_.announce.run_failed(trial, error);
  const bool failures_left = options.max_failures < 0 || record.failures <= options.max_failures;
  if (may_restart && failures_left) {
    state_.trials.set_status(trial, TrialPhase::pending);
    trial.repeat_until = record.iteration;
    return;
  }
  if (state_.first_failure.empty())
    state_.first_failure = fmt::format("trial {}: {}", trial.id, error);
  end(trial, Fate::failed, error);
}

}  // namespace kolo::tune

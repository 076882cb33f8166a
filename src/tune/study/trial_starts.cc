// start_one() takes a place before it looks for a trial, so that the search is asked for a new one
// only when it can start at once and with all results known by then. A new trial is asked for only
// while no other new one waits, unless the scheduler wants the whole population first. The
// scheduler chooses among all that wait. If every trial waits and none runs, the scheduler is told
// that it has stalled and its rulings are applied. If nothing starts even then, the oldest live
// trial is started anyway, because the study would never end otherwise. Starts and answers are only
// recorded here, and carried out after the step has been committed.
#include "tune/study/trial_starts.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {

void TrialStarts::fill() {
  create_population();
  while (start_one()) {
  }
  if (state_.actions.starting() || !stuck()) return;
  // The scheduler holds trials back until others have come as far. There will be no others.
  state_.journal.event("stalled", std::nullopt, "");
  state_.steering.stalled();
  ends_.apply_rulings();
  while (start_one()) {
  }
  if (!stuck()) return;
  if (auto place = state_.pool.take(state_.per_trial))
    start(*state_.trials.live().begin()->second, std::move(*place));
}

/// Trials wait, none runs, and no run is about to end either.
bool TrialStarts::stuck() const {
  const auto& trials = state_.trials;
  return trials.occupied() == 0 && !trials.live().empty() &&
         std::all_of(trials.live().begin(), trials.live().end(),
                     [](const auto& entry) { return entry.second->waiting(); });
}

bool TrialStarts::start_one() {
  auto& trials = state_.trials;
  const auto& steering = state_.steering;
  const std::int64_t most = state_.options.max_concurrent_trials;
  if (most > 0 && trials.occupied() >= most) return false;
  auto place = state_.pool.take(state_.per_trial);
  if (!place) return false;
  const auto live = static_cast<std::int64_t>(trials.live().size());
  std::vector<std::int64_t> candidates;
  if (live > trials.occupied()) candidates = trials.waiting();
  const bool has_new = std::any_of(candidates.begin(), candidates.end(), [&](std::int64_t number) {
    return trials.at(number).phase == TrialPhase::pending;
  });
  if (!has_new && room_for_another())
    if (const StudyTrial* created = create()) candidates.push_back(created->record.number);
  const auto chosen = candidates.empty() ? std::nullopt : steering.next(candidates);
  if (!chosen) {
    state_.pool.give_back(*place);
    return false;
  }
  start(trials.at(*chosen), std::move(*place));
  return true;
}

bool TrialStarts::waits_for_place() const {
  const auto& trials = state_.trials;
  const std::int64_t most = state_.options.max_concurrent_trials;
  if (most > 0 && trials.occupied() >= most) return false;
  const auto waiting = trials.waiting();
  if (!waiting.empty() && state_.steering.next(waiting)) return true;
  return room_for_another() && state_.steering.wants_more();
}

void TrialStarts::create_population() {
  const auto& steering = state_.steering;
  if (!steering.wants_all_trials()) return;
  while (state_.trials.size() < *steering.planned() && room_for_another() && create() != nullptr) {
  }
}

/// Whether the search allows one more live trial.
bool TrialStarts::room_for_another() const {
  const std::int64_t most = state_.steering.concurrency();
  return most == 0 || static_cast<std::int64_t>(state_.trials.live().size()) < most;
}

StudyTrial* TrialStarts::create() {
  auto& trials = state_.trials;
  const std::int64_t number = trials.size();
  auto proposal = state_.steering.ask(number);
  // "Not now" while nothing runs is "never".
  exhausted_ = !proposal && trials.occupied() == 0 && trials.live().empty();
  if (!proposal) return nullptr;
  auto trial = std::make_unique<StudyTrial>();
  const auto& study = state_.journal.study();
  trial->id = trial_id(study.first_name, study.created, number);
  trial->config = std::move(proposal->config);
  auto& record = trial->record;
  record.number = number;
  record.point = encode_point(proposal->point);
  record.config = encode(trial->config);
  record.asked_seq = state_.journal.next_seq();
  record.created = state_.clock.date();
  const std::string folder =
      trial_directory(state_.options, state_.announce.naming().prefix, trial->id, number,
                      trial->config, state_.steering.space(), record.created);
  record.directory = (std::filesystem::path(study.directory) / folder).string();
  return &trials.add(std::move(trial));
}

void TrialStarts::start(StudyTrial& trial, Grant place) {
  auto& record = trial.record;
  const bool again = record.started.has_value();
  if (!again) record.started = state_.clock.date();
  const std::string slot_before = std::exchange(record.place, std::to_string(place.slot));
  if (again)
    state_.journal.event(
        "resume", record.number,
        json_text({{"slot", record.place},
                   {"slot_before", slot_before},
                   {"checkpoint",
                    trial.checkpoints.empty() ? "" : trial.checkpoints.back().path.string()}}));
  const bool was_held = trial.phase == TrialPhase::held;
  state_.trials.set_status(trial, TrialPhase::running);
  state_.trials.occupy(trial, std::move(place));
  trial.began = state_.clock.now();
  trial.seconds_before = record.seconds;
  state_.trials.changed(trial);
  if (was_held) {  // it waits inside its report for this answer
    state_.actions.answer(trial.run_id(), {});
    // Its ranks have waited with it; its place may be a smaller one.
    if (trial.grant->ranks > 0) state_.actions.resize(trial.run_id(), trial.grant->ranks);
    return;
  }
  ++trial.run;
  trial.fate = Fate::open;
  trial.clone.reset();
  trial.kill_at.reset();
  state_.actions.start(order_for(trial));
  state_.announce.trial_started(trial);
}

StartOrder TrialStarts::order_for(StudyTrial& trial) const {
  StartOrder order;
  order.id = trial.run_id();
  order.trial_id = trial.id;
  order.trial_name = state_.announce.naming().name_of(trial.id);
  order.config = trial.config;
  order.directory = trial.record.directory;
  trial.run_iteration = 0;
  if (!trial.checkpoints.empty()) {
    order.checkpoint = trial.checkpoints.back().path;
    trial.run_iteration = trial.checkpoints.back().iteration;
  } else if (!state_.options.restore.empty()) {
    order.checkpoint = state_.options.restore;
  }
  order.iteration = trial.run_iteration;
  order.grant = *trial.grant;
  return order;
}

}  // namespace kolo::tune

// Trials begin, wait, and end.
#include <fmt/chrono.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/errors.h"
#include "tune/protocol/value_text.h"
#include "tune/study/controller.h"
#include "tune/study/slot_moves.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

using Clock = std::chrono::steady_clock;
using Stored = store::TrialStatus;

std::size_t place(Stored status) { return static_cast<std::size_t>(status); }

}  // namespace

void Controller::fill() {
  while (start_one()) {
  }
  if (running_ > 0 || !starts_.empty() || live_.empty() || somebody_leaves()) return;
  // Nothing runs and nothing may start: those who wait for company must go on without.
  event("stalled", std::nullopt, "");
  steering_.stalled();
  apply_rulings();
  while (start_one()) {
  }
  if (running_ > 0 || live_.empty() || somebody_leaves()) return;
  auto grant = pool_.take(setup_.per_trial);
  if (grant) start(*live_.begin()->second, *grant);
}

/// Held trials that were told to end have no place any more, but a run still.
bool Controller::somebody_leaves() const {
  return std::any_of(live_.begin(), live_.end(),
                     [](const auto& entry) { return !entry.second->waiting(); });
}

std::vector<std::int64_t> Controller::waiting() const {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, trial] : live_)
    if (trial->waiting()) numbers.push_back(number);
  return numbers;
}

bool Controller::start_one() {
  if (options_.max_concurrent_trials > 0 && running_ >= options_.max_concurrent_trials)
    return false;
  auto grant = pool_.take(setup_.per_trial);
  if (!grant) return false;
  std::vector<std::int64_t> candidates;
  if (static_cast<std::int64_t>(live_.size()) > running_) candidates = waiting();
  const bool has_new = std::any_of(candidates.begin(), candidates.end(), [this](std::int64_t n) {
    return trial(n).record.status == Stored::pending;
  });
  const bool room = steering_.concurrency() == 0 ||
                    static_cast<std::int64_t>(live_.size()) < steering_.concurrency();
  if (!has_new && room)
    if (const TrialState* created = create()) candidates.push_back(created->record.number);
  const auto chosen = candidates.empty() ? std::nullopt : steering_.next(candidates);
  if (!chosen) {
    pool_.give_back(*grant);
    return false;
  }
  start(trial(*chosen), std::move(*grant));
  return true;
}

TrialState* Controller::create() {
  const auto number = static_cast<std::int64_t>(trials_.size());
  auto proposal = steering_.ask(number);
  // "Not now" while nothing runs is "never".
  stalled_ = !proposal && running_ == 0 && live_.empty();
  if (!proposal) return nullptr;
  auto& trial = *trials_.emplace_back(std::make_unique<TrialState>());
  trial.id = trial_id(study_.name, study_.created, number);
  trial.config = std::move(proposal->config);
  auto& record = trial.record;
  record.number = number;
  record.point = encode_point(proposal->point);
  record.config = encode(trial.config);
  record.asked_seq = next_seq();
  record.created = now();
  record.directory = (std::filesystem::path(study_.directory) /
                      trial_directory(options_, setup_.trainable_name, trial.id, number,
                                      trial.config, steering_.space(), record.created))
                         .string();
  ++counts_[place(record.status)];
  live_.emplace(number, &trial);
  changed(trial);
  return &trial;
}

void Controller::start(TrialState& trial, Grant grant) {
  auto& record = trial.record;
  --counts_[place(record.status)];
  record.status = Stored::running;
  ++counts_[place(record.status)];
  ++running_;
  const bool again = record.started.has_value();
  if (!again) record.started = now();
  const std::string place_before = std::exchange(record.place, std::to_string(grant.slot));
  trial.grant = grant;
  trial.began = Clock::now();
  trial.seconds_before = record.seconds;
  changed(trial);
  if (again)
    event("resume", record.number,
          slot_move_text({grant.slot, std::atoi(place_before.c_str())},
                         trial.checkpoints.empty() ? "" : trial.checkpoints.back().path.string()));
  if (trial.held) {  // it sits in its report and waits for this
    trial.held = false;
    answers_.push_back({trial.run_id(), {}});
    return;
  }
  ++trial.run;
  trial.active = true;
  trial.ending = Ending::none;
  trial.clone.reset();
  trial.kill_at.reset();
  StartOrder order;
  order.id = trial.run_id();
  order.trial_id = trial.id;
  order.trial_name = setup_.trainable_name + "_" + trial.id;
  order.config = trial.config;
  order.directory = record.directory;
  trial.run_iteration = 0;
  if (!trial.checkpoints.empty()) {
    order.checkpoint = trial.checkpoints.back().path;
    trial.run_iteration = trial.checkpoints.back().iteration;
  } else if (!options_.restore.empty()) {
    order.checkpoint = options_.restore;
  }
  order.iteration = trial.run_iteration;
  order.grant = std::move(grant);
  starts_.push_back(std::move(order));
  if (!options_.callbacks.empty() || !setup_.observers.empty())
    afterwards_.push_back([this, &trial] {
      for (auto& callback : options_.callbacks) callback->on_trial_start(info(trial));
      for (auto& observer : setup_.observers) observer->on_trial_start(info(trial));
    });
}

/// The run has left its place.
void Controller::give_back(TrialState& trial) {
  if (!trial.grant) return;
  pool_.give_back(*trial.grant);
  trial.grant.reset();
  --running_;
  trial.record.seconds =
      trial.seconds_before + std::chrono::duration<double>(Clock::now() - trial.began).count();
}

void Controller::apply_rulings() {
  for (auto& [number, ruling] : steering_.take_rulings()) {
    auto& trial = this->trial(number);
    if (trial.ended() || (trial.active && !trial.held)) continue;
    if (ruling.verdict == Verdict::stop || ruling.verdict == Verdict::full) {
      want_end(trial, ruling.verdict == Verdict::stop ? Ending::pruned : Ending::done,
               ruling.reason);
    } else if (ruling.verdict == Verdict::clone) {
      if (trial.held) {
        trial.clone = ruling;
        want_end(trial, Ending::cloned, ruling.reason);
      } else {
        apply_clone(trial, ruling);
      }
    }
  }
}

/// Goes on as another trial: its checkpoint, with a varied configuration.
void Controller::apply_clone(TrialState& trial, const Ruling& ruling) {
  const auto& source = this->trial(ruling.source.value());
  trial.config = ruling.config.value_or(trial.config);
  trial.record.config = encode(trial.config);
  trial.repeat_until = 0;
  std::string from = trial.checkpoints.empty() ? "from the beginning: neither has a checkpoint"
                                               : "from its own checkpoint: the other has none";
  if (!source.checkpoints.empty()) {
    const Checkpoint best = source.checkpoints.back();  // a copy: a replay is its own source
    try {
      const auto path = clone_checkpoint(best.path, trial.record.directory, best.iteration);
      const std::int64_t seq = next_seq();
      trial.checkpoints.push_back({path, best.iteration, seq, std::nullopt});
      batch_.checkpoints.push_back(
          {trial.record.number, seq, best.iteration, path.string(), now()});
      from = "from " + best.path.string();
    } catch (const Error& error) {
      from = error.message();
    }
  }
  event(
      "clone", trial.record.number,
      fmt::format("of trial {} ({}): {}; {}", source.id, ruling.reason, trial.record.config, from));
  changed(trial);
  if (setup_.makes_directories) afterwards_.push_back([this] { write_policy(); });
}

void Controller::write_policy() {
  try {
    policy_files_.update(steering_.policy(),
                         [this](std::int64_t number) { return trial(number).id; });
  } catch (const std::exception& error) {
    note_unwritten(error);
  }
}

void Controller::want_end(TrialState& trial, Ending how, const std::string& why) {
  if (!trial.active) {
    if (how == Ending::dropped) return;
    end_trial(trial, how, why);
    return;
  }
  if (trial.ending != Ending::none) return;
  trial.end_reason = why;
  if (trial.held) {
    trial.held = false;
    trial.ending = how;
    answers_.push_back({trial.run_id(), {Reply::stop}});
  } else if (how == Ending::done || how == Ending::dropped) {
    trial.stop_wanted = true;  // its next report is stored, and then answered
    if (how == Ending::dropped) trial.ending = how;
  } else {
    trial.ending = how;
  }
  stops_.push_back(trial.run_id());
  trial.kill_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.grace);
}

void Controller::end_trial(TrialState& trial, Ending how, const std::string& why) {
  auto& record = trial.record;
  search::Outcome outcome;
  if (how == Ending::failed) {
    outcome = search::Outcome::failed();
  } else if (how == Ending::pruned || (trial.values.empty() && !steering_.objectives().empty())) {
    outcome = search::Outcome::pruned(trial.values);
  } else {
    outcome = search::Outcome::complete(steering_.objectives().empty() ? std::vector<double>{0}
                                                                       : trial.values);
  }
  if (outcome.state == search::TrialState::pruned && outcome.values.empty() &&
      record.iteration == 0)
    outcome = search::Outcome::failed();  // it never said anything
  steering_.end(record.number, outcome);
  --counts_[place(record.status)];
  record.status = how == Ending::failed ? Stored::error : Stored::terminated;
  ++counts_[place(record.status)];
  record.ended_seq = next_seq();
  record.ended = now();
  record.why = why;
  record.outcome =
      encode(Value{{"state", static_cast<int>(outcome.state)},
                   {"values", Value::List(outcome.values.begin(), outcome.values.end())}});
  live_.erase(record.number);
  changed(trial);
  afterwards_.push_back([this, &trial, how] {
    log_safely(trial, [how](TrialLog& log) { log.end(how != Ending::failed); });
    trial.log.reset();
    for (auto& callback : options_.callbacks)
      how == Ending::failed ? callback->on_trial_error(info(trial))
                            : callback->on_trial_complete(info(trial));
    for (auto& observer : setup_.observers)
      how == Ending::failed ? observer->on_trial_error(info(trial))
                            : observer->on_trial_complete(info(trial));
    trial.config = {};  // of many trials that have ended the text is enough
  });
  apply_rulings();
}

void Controller::fail_run(TrialState& trial, const std::string& error) {
  auto& record = trial.record;
  ++record.failures;
  record.error = error;
  event("failure", record.number, error);
  const std::int64_t count = record.failures;
  const double time = now();
  afterwards_.push_back([this, &trial, count, error, time] {
    log_safely(trial, [&](TrialLog& log) { log.failure(count, error, time); });
  });
  const bool again = options_.max_failures < 0 || record.failures <= options_.max_failures;
  if (again && !trial.stop_wanted) {
    --counts_[place(record.status)];
    record.status = Stored::pending;
    ++counts_[place(record.status)];
    trial.repeat_until = record.iteration;
    changed(trial);
    return;
  }
  if (first_error_.empty()) first_error_ = fmt::format("trial {}: {}", trial.id, error);
  end_trial(trial, Ending::failed, error);
  if (options_.fail_fast) leave(Leaving::failed, "a trial failed");
}

}  // namespace kolo::tune

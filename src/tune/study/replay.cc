#include "tune/study/replay.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

search::Outcome stored_outcome(const store::TrialRecord& record) {
  const Value stored = decode(record.outcome, "the outcome of a trial");
  search::Outcome outcome;
  outcome.state = static_cast<search::TrialState>(stored.at_path("state").as_integer());
  for (const Value& value : stored.at_path("values").as_list())
    outcome.values.push_back(value.as_number());
  return outcome;
}

/// As if the trial had not ended.
void forget_failure(store::TrialRecord& record) {
  record.status = TrialStatus::pending;
  record.ended_seq.reset();
  record.ended.reset();
  record.failures = 0;
  record.outcome.clear();
  record.why.clear();
}

}  // namespace

std::int64_t Replay::run() {
  if (state_.journal.fresh()) return 0;
  load_trials();
  tell_journal();
  for (auto* trial : state_.trials.live_list()) settle(*trial);
  rewrite_files_of_ended();
  for (const auto* trial : ends_in_order_) ends_.let_go(trial->record.number);
  if (state_.makes_directories) ends_.write_policy();
  state_.journal.event(
      "resumed", std::nullopt,
      fmt::format("{} trials, {} open", state_.trials.size(), state_.trials.live().size()));
  return reports_;
}

void Replay::load_trials() {
  auto& store = state_.journal.store();
  const auto& study = state_.journal.study();
  for (auto& record : store.trials(study.id)) {
    const bool again =
        state_.options.resume == Resume::errored && record.status == TrialStatus::error;
    if (again) forget_failure(record);
    const auto& space = state_.changes.space;
    if (space) record.point = encode_point(space->carried(decode_point(record.point)).value());
    std::string id = trial_id(study.first_name, study.created, record.number);
    auto& trial = state_.trials.load(std::move(record), std::move(id));
    if (again || space) state_.trials.changed(trial);
  }
  for (auto& checkpoint : store.checkpoints(study.id)) {
    auto& trial = state_.trials.at(checkpoint.trial);
    trial.checkpoints.push_back({checkpoint.path, checkpoint.iteration, checkpoint.seq, {}});
    state_.trials.note_checkpoint(trial, checkpoint.path);
  }
}

/// Four orders are merged by sequence number: asks, which come by number already, ends, stalls, and
/// the reports, which the store gives in order.
void Replay::tell_journal() {
  auto& store = state_.journal.store();
  const auto id = state_.journal.study().id;
  for (const auto& [number, trial] : state_.trials.kept())
    if (trial->ended()) ends_in_order_.push_back(trial.get());
  std::sort(ends_in_order_.begin(), ends_in_order_.end(),
            [](const StudyTrial* left, const StudyTrial* right) {
              return *left->record.ended_seq < *right->record.ended_seq;
            });
  for (const auto& event : store.events(id)) {
    if (event.kind == "stalled") stalls_.push_back(event.seq);
    if (event.kind == "clone" && event.trial) last_clone_[*event.trial] = event.seq;
  }
  store.each_report(id, [this](store::ReportRecord& report) {
    tell_until(report.seq);
    tell_report(report);
  });
  tell_until(state_.journal.seq() + 1);
}

void Replay::tell_until(std::int64_t seq) {
  auto& trials = state_.trials;
  for (;;) {
    const std::int64_t ask =
        next_ask_ < trials.size() ? trials.at(next_ask_).record.asked_seq : seq;
    const std::int64_t end =
        next_end_ < ends_in_order_.size() ? *ends_in_order_[next_end_]->record.ended_seq : seq;
    const std::int64_t stall = next_stall_ < stalls_.size() ? stalls_[next_stall_] : seq;
    const std::int64_t first = std::min({ask, end, stall});
    if (first >= seq) return;
    if (first == ask) {
      tell_ask(trials.at(next_ask_++).record);
    } else if (first == end) {
      tell_end(ends_in_order_[next_end_++]->record);
    } else {
      ++next_stall_;
      state_.steering.stalled();
    }
    note_rulings();
  }
}

/// Most were followed in the same step. A trial that still saved then follows later, for which the
/// session may have been too short.
void Replay::note_rulings() {
  for (auto& [number, ruling] : state_.steering.take_rulings())
    if (consequence_of(ruling.verdict).fate != Fate::open)
      rulings_.insert_or_assign(number, std::move(ruling));
}

void Replay::tell_ask(const store::TrialRecord& record) {
  auto& steering = state_.steering;
  auto point = decode_point(record.point);
  steering.check_stored(record.number, point);
  // The record of a clone has its new configuration.
  const Value config = !steering.needs_configs() ? Value()
                       : last_clone_.contains(record.number)
                           ? steering.config_of(record.number, point)
                           : decode(record.config, "a configuration");
  steering.recall(record.number, std::move(point), config);
}

void Replay::tell_end(const store::TrialRecord& record) {
  if (*record.ended_seq > state_.journal.logged()) stale_files_.insert(record.number);
  state_.steering.end(record.number, stored_outcome(record));
}

void Replay::tell_report(store::ReportRecord& report) {
  auto& steering = state_.steering;
  auto& trial = state_.trials.at(report.trial);
  if (report.seq > state_.journal.logged()) stale_files_.insert(report.trial);
  const double step = report.seconds - trial.last_seconds;
  Value result = decode(report.metrics, "a report");
  complete_result(result, report.iteration, report.seconds, step);
  const auto verdict = static_cast<Verdict>(report.action);
  Ruling ruling = steering.replay(report.trial, result, report.others_waited, verdict);
  rulings_.erase(report.trial);
  note_rulings();
  ++reports_;
  trial.record.iteration = report.iteration;
  trial.last_step = step;
  trial.last_seconds = report.seconds;
  trial.last_time = report.time;
  trial.last_metrics = std::move(report.metrics);
  if (!steering.objectives().empty()) trial.values = steering.values_of(result);
  state_.trials.note_values(trial);
  for (Checkpoint& checkpoint : trial.checkpoints)
    if (checkpoint.iteration == report.iteration)
      checkpoint.score = checkpoint_score(state_.options.checkpoint_score_attr, result);
  if (trial.ended()) return;
  // What the last report led to may not have happened before the session ended.
  trial.fate = consequence_of(verdict).fate;
  // A scheduler that has taken over from another one knows of no such clone.
  if (trial.fate == Fate::cloned && ruling.verdict != Verdict::clone) trial.fate = Fate::open;
  trial.fate_reason = std::move(report.reason);
  if (trial.fate == Fate::cloned) trial.clone = std::move(ruling);
  const auto clone = last_clone_.find(report.trial);
  cloned_since_report_.erase(report.trial);
  if (clone == last_clone_.end() || clone->second < report.seq) return;
  cloned_since_report_.insert(report.trial);
  trial.fate = Fate::open;
}

/// A trial that had not ended: its run, if it had one, is gone.
void Replay::settle(StudyTrial& trial) {
  auto& record = trial.record;
  trial.config = decode(record.config, "a configuration");
  ends_.remove_leftovers(trial);
  record.seconds = std::max(record.seconds, trial.last_seconds);
  if (const auto ruling = rulings_.find(record.number);
      ruling != rulings_.end() && !cloned_since_report_.contains(record.number)) {
    trial.fate = consequence_of(ruling->second.verdict).fate;
    trial.fate_reason = ruling->second.reason;
    trial.clone = ruling->second;
  }
  const auto clone = std::exchange(trial.clone, std::nullopt);
  const auto pause = [&] {
    if (trial.phase != TrialPhase::paused) state_.trials.set_status(trial, TrialPhase::paused);
  };
  switch (const Fate fate = std::exchange(trial.fate, Fate::open)) {
    case Fate::pruned:
    case Fate::done: ends_.end(trial, fate, trial.fate_reason); return;
    case Fate::cloned:
      ends_.apply_clone(trial, clone.value());
      pause();
      break;
    case Fate::paused:
      pause();
      trial.repeat_until = record.iteration;
      break;
    default:
      // Reports before a clone are those of another history; after it all are new.
      trial.repeat_until = cloned_since_report_.contains(record.number) ? 0 : record.iteration;
      break;
  }
  if (record.started) rewrite_files(trial);
}

void Replay::rewrite_files(StudyTrial& trial) {
  if (!state_.announce.files().enabled()) return;
  const auto reports =
      state_.journal.store().reports_of(state_.journal.study().id, trial.record.number);
  state_.announce.files().rewrite(trial, reports, state_.announce.naming());
}

/// Those of trials that go on are written anew already.
void Replay::rewrite_files_of_ended() {
  if (!state_.announce.files().enabled()) return;
  for (const std::int64_t number : stale_files_) {
    auto& trial = state_.trials.at(number);
    if (!trial.ended() || trial.log) continue;
    rewrite_files(trial);
    if (trial.log) state_.announce.files().end(trial, trial.phase != TrialPhase::failed);
  }
}

}  // namespace kolo::tune

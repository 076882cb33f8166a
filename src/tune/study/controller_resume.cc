// Back to where an earlier controller was: the journal is told again to sampler, scheduler and
// stoppers, in the same order.
#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "tune/protocol/value_text.h"
#include "tune/study/controller.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

using Stored = store::TrialStatus;

search::Outcome outcome_of(const store::TrialRecord& record) {
  const Value stored = decode(record.outcome, "the outcome of a trial");
  search::Outcome outcome;
  outcome.state = static_cast<search::TrialState>(stored.at_path("state").as_integer());
  for (const Value& value : stored.at_path("values").as_list())
    outcome.values.push_back(value.as_number());
  return outcome;
}

}  // namespace

/// As if it had not ended: what was asked for since then is recalled anyway.
void Controller::forget_failure(TrialState& trial) {
  trial.record.status = Stored::pending;
  trial.record.ended_seq.reset();
  trial.record.ended.reset();
  trial.record.failures = 0;
  trial.record.outcome.clear();
  trial.record.why.clear();
  changed(trial);
}

void Controller::resume() {
  if (seq_ == 0) return;
  auto records = store_.trials(study_.id);
  trials_.reserve(records.size());
  for (auto& record : records) {
    if (record.number != static_cast<std::int64_t>(trials_.size()))
      throw_error(ErrorCode::corruption, "study {}: trial {} is missing", study_.name,
                  trials_.size());
    auto& trial = *trials_.emplace_back(std::make_unique<TrialState>());
    trial.id = trial_id(study_.name, study_.created, record.number);
    trial.record = std::move(record);
    if (options_.resume == Resume::errored && trial.record.status == Stored::error)
      forget_failure(trial);
    ++counts_[static_cast<std::size_t>(trial.record.status)];
    if (!trial.ended()) live_.emplace(trial.record.number, &trial);
  }
  for (auto& checkpoint : store_.checkpoints(study_.id))
    trial(checkpoint.trial)
        .checkpoints.push_back({checkpoint.path, checkpoint.iteration, checkpoint.seq, {}});
  replay_journal();
  std::vector<TrialState*> open;
  for (auto& [number, trial] : live_) open.push_back(trial);
  for (auto* trial : open) settle_after_replay(*trial);
  rewrite_stale_logs();
  if (setup_.makes_directories) write_policy();
  event("resumed", std::nullopt, fmt::format("{} trials, {} open", trials_.size(), live_.size()));
}

void Controller::replay_journal() {
  // Asks come by number already; ends and stalls are put in order here, reports by the store.
  std::vector<TrialState*> ends;
  for (auto& trial : trials_)
    if (trial->ended()) ends.push_back(trial.get());
  std::sort(ends.begin(), ends.end(), [](const TrialState* left, const TrialState* right) {
    return *left->record.ended_seq < *right->record.ended_seq;
  });
  std::vector<std::int64_t> stalls;
  std::map<std::int64_t, std::int64_t> cloned;  // trial -> seq of its last clone
  for (const auto& event : store_.events(study_.id)) {
    if (event.kind == "stalled") stalls.push_back(event.seq);
    if (event.kind == "clone" && event.trial) cloned[*event.trial] = event.seq;
  }

  std::size_t next_ask = 0, next_end = 0, next_stall = 0;
  const auto up_to = [&](std::int64_t seq) {
    for (;;) {
      const std::int64_t ask =
          next_ask < trials_.size() ? trials_[next_ask]->record.asked_seq : seq;
      const std::int64_t end = next_end < ends.size() ? *ends[next_end]->record.ended_seq : seq;
      const std::int64_t stall = next_stall < stalls.size() ? stalls[next_stall] : seq;
      const std::int64_t first = std::min({ask, end, stall});
      if (first >= seq) return;
      if (first == ask) {
        const auto& record = trials_[next_ask++]->record;
        auto point = decode_point(record.point);
        const Value config = !steering_.needs_configs() ? Value()
                             : cloned.find(record.number) == cloned.end()
                                 ? decode(record.config, "a configuration")
                                 : steering_.config_of(record.number, point);
        steering_.recall(record.number, std::move(point), config);
      } else if (first == end) {
        const auto& record = ends[next_end++]->record;
        if (*record.ended_seq > logged_) stale_logs_.insert(record.number);
        steering_.end(record.number, outcome_of(record));
      } else {
        ++next_stall;
        steering_.stalled();
      }
      static_cast<void>(steering_.take_rulings());  // acted on before, in the same step
    }
  };
  store_.each_report(study_.id, [&](store::ReportRecord& report) {
    up_to(report.seq);
    if (report.seq > logged_) stale_logs_.insert(report.trial);
    auto& trial = this->trial(report.trial);
    Value result = decode(report.metrics, "a report");
    auto& fields = result.as_dict();
    fields.insert_or_assign("training_iteration", report.iteration);
    fields.insert_or_assign("time_total_s", report.seconds);
    fields.try_emplace("time_this_iter_s", report.seconds - trial.last_seconds);
    const auto verdict = static_cast<Verdict>(report.action);
    Ruling ruling = steering_.replay(report.trial, result, report.others_waited, verdict);
    static_cast<void>(steering_.take_rulings());
    ++reports_;
    trial.record.iteration = report.iteration;
    trial.last_step = report.seconds - trial.last_seconds;
    trial.last_seconds = report.seconds;
    trial.last_time = report.time;
    trial.last_metrics = std::move(report.metrics);
    if (!steering_.objectives().empty()) trial.values = steering_.values_of(result);
    note_best(trial);
    if (trial.ended()) return;
    // What the last report led to may not have happened yet.
    trial.ending = verdict == Verdict::stop    ? Ending::pruned
                   : verdict == Verdict::rule  ? Ending::done
                   : verdict == Verdict::done  ? Ending::done
                   : verdict == Verdict::full  ? Ending::done
                   : verdict == Verdict::clone ? Ending::cloned
                   : verdict == Verdict::pause ? Ending::paused
                                               : Ending::none;
    trial.end_reason = report.reason;
    trial.clone = std::move(ruling);
    const auto clone = cloned.find(report.trial);
    trial.cloned_since = clone != cloned.end() && clone->second > report.seq;
    if (trial.cloned_since) trial.ending = Ending::none;  // it has happened
  });
  up_to(seq_ + 1);
}

/// A trial whose run was cut off.
void Controller::settle_after_replay(TrialState& trial) {
  auto& record = trial.record;
  trial.config = decode(record.config, "a configuration");
  remove_unknown_checkpoints(record.directory, trial.checkpoints);
  record.seconds = std::max(record.seconds, trial.last_seconds);
  const auto status = record.status;
  switch (std::exchange(trial.ending, Ending::none)) {
    case Ending::pruned: end_trial(trial, Ending::pruned, trial.end_reason); return;
    case Ending::done: end_trial(trial, Ending::done, trial.end_reason); return;
    case Ending::cloned:
      apply_clone(trial, *trial.clone);
      record.status = Stored::paused;
      break;
    case Ending::paused:
      record.status = Stored::paused;
      trial.repeat_until = record.iteration;
      break;
    default:
      // RUNNING is stored; it starts again from its checkpoint.
      if (record.status == Stored::running) record.status = Stored::pending;
      // After a clone, what was reported before it is another story.
      trial.repeat_until = trial.cloned_since ? 0 : record.iteration;
      break;
  }
  if (record.status != status) {
    --counts_[static_cast<std::size_t>(status)];
    ++counts_[static_cast<std::size_t>(record.status)];
    changed(trial);
  }
  if (!options_.loggers.empty() && record.started) rewrite_logs(trial);
}

/// Of trials that had ended; those that go on have theirs already.
void Controller::rewrite_stale_logs() {
  if (options_.loggers.empty()) return;
  for (const std::int64_t number : stale_logs_) {
    auto& trial = this->trial(number);
    if (!trial.ended() || trial.log) continue;
    trial.config = decode(trial.record.config, "a configuration");
    rewrite_logs(trial);
    if (trial.log)
      log_safely(trial, [&trial](TrialLog& log) { log.end(trial.record.status != Stored::error); });
    trial.log.reset();
  }
  stale_logs_.clear();
}

void Controller::rewrite_logs(TrialState& trial) {
  const auto reports = store_.reports_of(study_.id, trial.record.number);
  if (reports.empty()) return;
  try {
    std::vector<std::string> metrics;
    for (const auto& objective : steering_.objectives()) metrics.push_back(objective.metric);
    trial.log = std::make_unique<TrialLog>(
        LoggedTrial{trial.record.directory, trial.config, std::move(metrics)}, options_.loggers,
        /*anew=*/true);
    TrialState then;
    then.id = trial.id;
    then.record = trial.record;
    then.seconds_before = 0;
    for (const auto& report : reports) {
      then.record.iteration = report.iteration;
      then.last_step = report.seconds - then.last_seconds;
      then.last_seconds = report.seconds;
      then.last_time = report.time;
      then.last_metrics = report.metrics;
      Value result = full_result(then);
      result.as_dict().insert_or_assign("config", trial.config);
      trial.log->result(result);
    }
    trial.log->release();
  } catch (const std::exception& error) {
    logs_complete_ = false;
    log::warning("study {}: files of trial {} cannot be written anew: {}", study_.name, trial.id,
                 error.what());
  }
}

}  // namespace kolo::tune

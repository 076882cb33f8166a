// A report is new, or it has been there before: ranks of an elastic trial took a step again
// (made_again), or a run that was started again has not come as far as the last one (repeat). A new
// one is put before the search and recorded; the ruling decides about the answer and the fate of
// the trial (follow). The run waits for the answer, which is sent when the step is stored.
#include "tune/study/trial_reports.h"

#include "base/errors.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

/// A list stands for all objectives at once: {"objective": [1, 2]} of objective_0 and objective_1.
void spread_objectives(Value& result, const std::vector<Objective>& objectives) {
  if (objectives.size() < 2 || !objectives.front().metric.ends_with("_0")) return;
  std::string name = objectives.front().metric;
  name.resize(name.size() - 2);
  auto& fields = result.as_dict();
  const auto list = fields.find(name);
  if (list == fields.end() || !list->second.is_list()) return;
  const Value values = list->second;
  if (values.as_list().size() != objectives.size())
    throw_error(ErrorCode::invalid_argument, "it reported {} objectives where the study has {}",
                values.as_list().size(), objectives.size());
  fields.erase(list);
  for (std::size_t i = 0; i < objectives.size(); ++i)
    fields.insert_or_assign(objectives[i].metric, values.as_list()[i]);
}

/// Instead of a number a trial may report that it failed: a text that begins with F, as "F_memory".
std::string failure_in(const Value& result, const std::vector<Objective>& objectives) {
  for (const auto& objective : objectives)
    if (const Value* value = result.find_path(objective.metric))
      if (value->is_string() && value->as_string().starts_with('F')) return value->as_string();
  return {};
}

/// Why the trial may not name this checkpoint; "" = it may, or it has named none.
std::string fault_in(const std::filesystem::path& checkpoint, const StudyTrial& trial) {
  if (checkpoint.empty()) return {};
  const std::filesystem::path directory = trial.record.directory;
  return fault_of_checkpoint(checkpoint_path(checkpoint, directory), directory);
}

}  // namespace

void TrialReports::refuse(StudyTrial& trial, const std::string& why) {
  ends_.saved(trial);  // it will not
  if (trial.phase != TrialPhase::ending)
    ends_.tell_end(trial, trial.phase == TrialPhase::stopping ? Fate::lost : Fate::failed, why);
  state_.actions.answer(trial.run_id(), {Reply::stop});
}

void TrialReports::on_report(StudyTrial& trial, Message& message) {
  const RunId id = trial.run_id();
  if (const auto fault = fault_in(message.checkpoint, trial); !fault.empty())
    return refuse(trial, fault);
  if (message.iteration && *message.iteration <= trial.run_iteration)
    return made_again(trial, message);
  ends_.saved(trial);  // whoever reports again saves no longer
  if (trial.phase == TrialPhase::ending) {
    state_.actions.answer(id, {Reply::stop});
    return;
  }
  if (trial.run_iteration < trial.repeat_until) {
    repeat(trial, message);
    return;
  }
  Ruling ruling;
  try {
    ruling = record(trial, message);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) ends_.miss_metric(trial, error.message());
    return refuse(trial, error.message());
  }
  follow(trial, ruling, message.saves_on_request);
  ends_.apply_rulings();
}

/// It was reported before the trial was interrupted, and what was decided then holds.
void TrialReports::repeat(StudyTrial& trial, const Message& message) {
  ++trial.run_iteration;
  if (!message.checkpoint.empty()) add_checkpoint(trial, message.checkpoint, trial.run_iteration);
  const bool stop = trial.phase == TrialPhase::stopping;
  if (stop) ends_.tell_end(trial, trial.fate, trial.fate_reason);
  state_.actions.answer(trial.run_id(), {stop ? Reply::stop : Reply::proceed});
}

/// Ranks of an elastic trial have taken a step again, because one of them was lost before its end.
/// What was decided the first time holds.
void TrialReports::made_again(StudyTrial& trial, const Message& message) {
  if (!message.checkpoint.empty()) add_checkpoint(trial, message.checkpoint, *message.iteration);
  // Of a trial that is held, the rank that asked first is gone, and this one waits on.
  const bool stop = trial.phase == TrialPhase::ending || trial.phase == TrialPhase::stopping;
  state_.actions.answer(trial.run_id(), {stop ? Reply::stop : Reply::proceed, trial.saving});
}

Ruling TrialReports::record(StudyTrial& trial, const Message& message) {
  auto& trials = state_.trials;
  auto& steering = state_.steering;
  const std::int64_t iteration = trial.run_iteration + 1;
  const double seconds = trial.seconds_at(message.came);
  const double step = seconds - trial.last_seconds;
  Value result = message.kind == Message::Kind::ended ? *message.last_words : message.metrics;
  spread_objectives(result, steering.objectives());
  const std::string metrics = encode(result);
  complete_result(result, iteration, seconds, step);
  const bool others_wait =
      static_cast<std::int64_t>(trials.live().size()) > trials.occupied() || steering.wants_more();
  if (const auto failure = failure_in(result, steering.objectives()); !failure.empty())
    throw Error(ErrorCode::cancelled, failure);
  const bool last = message.kind == Message::Kind::ended;
  Ruling ruling = steering.report(trial.record.number, result, others_wait, last);
  if (!steering.objectives().empty()) trial.values = steering.values_of(result);

  store::ReportRecord& report = state_.journal.report(trial.record.number);
  report.iteration = iteration;
  report.seconds = seconds;
  report.metrics = metrics;
  report.action = static_cast<std::int64_t>(ruling.verdict);
  report.reason = ruling.reason;
  report.others_waited = others_wait;
  ++recorded_;
  trial.run_iteration = trial.record.iteration = iteration;
  trial.last_metrics = metrics;
  trial.last_step = step;
  trial.last_seconds = seconds;
  trial.last_time = report.time;
  if (!message.checkpoint.empty()) {
    add_checkpoint(trial, message.checkpoint, iteration);
    trial.checkpoints.back().score = checkpoint_score(state_.options.checkpoint_score_attr, result);
  }
  trials.note_values(trial);
  state_.announce.trial_result(trial);
  return ruling;
}

void TrialReports::follow(StudyTrial& trial, const Ruling& ruling, bool saves_on_request) {
  const bool stopping = trial.phase == TrialPhase::stopping;
  const auto end = [&](Fate fate, const std::string& reason, Reply reply) {
    // A trial of a study that stops is resumed later, whatever the scheduler wants of it now.
    const bool dropped = stopping && trial.fate == Fate::dropped;
    ends_.tell_end(trial, dropped ? Fate::dropped : fate, reason);
    state_.actions.answer(trial.run_id(), {reply});
  };
  const bool fresh =
      !trial.checkpoints.empty() && trial.checkpoints.back().iteration == trial.run_iteration;
  const auto [fate, reply] = consequence_of(ruling.verdict);
  switch (fate) {
    case Fate::open:
      if (stopping) {
        end(trial.fate, trial.fate_reason, Reply::stop);
      } else {
        trial.saving = ruling.save && saves_on_request && !fresh;
        state_.actions.answer(trial.run_id(), {Reply::proceed, ruling.save});
      }
      return;
    case Fate::cloned: {
      trial.clone = ruling;
      // Where the other has nothing to copy, or is this one itself, it goes on from its own state,
      // differently.
      const auto& source = state_.trials.at(*ruling.source);
      const bool own_state = &source == &trial || (source.checkpoints.empty() && !source.saving);
      trial.saving = own_state && saves_on_request && !fresh;
      end(fate, ruling.reason, trial.saving ? Reply::pause : reply);
      return;
    }
    case Fate::paused:
      if (fresh || saves_on_request || stopping) {
        trial.saving = saves_on_request && !fresh;
        end(fate, ruling.reason, reply);
      } else {
        hold(trial, ruling.reason);
      }
      return;
    default: end(fate, ruling.reason, reply); return;
  }
}

/// A pause without a checkpoint would lose all its work. So the run stays, inside its report, and
/// gives its place away.
void TrialReports::hold(StudyTrial& trial, const std::string& reason) {
  if (trial.phase == TrialPhase::held) return;  // another of its processes reported as well
  ends_.give_back(trial);
  state_.trials.set_status(trial, TrialPhase::held);
  state_.journal.event("pause", trial.record.number, reason + " (without a checkpoint)");
}

void TrialReports::on_checkpoint(StudyTrial& trial, const std::filesystem::path& path) {
  if (const auto fault = fault_in(path, trial); !fault.empty()) return refuse(trial, fault);
  add_checkpoint(trial, path, trial.run_iteration);
  ends_.saved(trial);
  state_.actions.answer(trial.run_id(), {});
}

void TrialReports::add_checkpoint(StudyTrial& trial, const std::filesystem::path& named,
                                  std::int64_t iteration) {
  const auto path = checkpoint_path(named, trial.record.directory);
  const auto seq = state_.journal.checkpoint(trial.record.number, iteration, path);
  // A program may write to the same place each time; there is one checkpoint then, the newest.
  std::erase_if(trial.checkpoints, [&path](const Checkpoint& old) { return old.path == path; });
  trial.checkpoints.push_back({path, iteration, seq, std::nullopt});
  state_.trials.note_checkpoint(trial, path);
  state_.actions.keep(path);
  auto surplus = surplus_checkpoints(trial.checkpoints, state_.options.keep_checkpoints_num);
  for (auto place = surplus.rbegin(); place != surplus.rend(); ++place) {
    const Checkpoint old = std::move(trial.checkpoints[*place]);
    trial.checkpoints.erase(trial.checkpoints.begin() + static_cast<std::ptrdiff_t>(*place));
    state_.journal.checkpoint_removed(old);
    if (state_.trials.may_remove(trial, old.path))
      state_.actions.remove(old.path, trial.record.directory);
  }
  state_.announce.trial_saved(trial);
}

void TrialReports::on_end(StudyTrial& trial, Message& message) {
  const bool counts =
      trial.fate == Fate::open || (trial.phase == TrialPhase::stopping && trial.fate == Fate::done);
  if (const auto fault = fault_in(message.checkpoint, trial); !fault.empty()) {
    message.checkpoint.clear();
    if (message.error.empty() && counts) message.error = fault;
  }
  if (message.last_words && message.error.empty() && counts)
    take_last_result(trial, message);
  else if (!message.checkpoint.empty())
    add_checkpoint(trial, message.checkpoint, trial.run_iteration);
  ends_.saved(trial);
  ends_.give_back(trial);
  trial.kill_at.reset();
  state_.trials.changed(trial);
  // It may have died while it saved.
  if (!message.error.empty()) ends_.remove_leftovers(trial);
  ends_.follow_fate(trial, message.error);
}

/// The result that a run leaves at its end: what a function returns, or a program's last line of
/// output. It is recorded, but there is no run left to pause, to clone or to answer.
void TrialReports::take_last_result(StudyTrial& trial, const Message& end) {
  if (trial.run_iteration < trial.repeat_until) {
    ++trial.run_iteration;
    if (!end.checkpoint.empty()) add_checkpoint(trial, end.checkpoint, trial.run_iteration);
    return;
  }
  try {
    const Ruling ruling = record(trial, end);
    const Fate fate = consequence_of(ruling.verdict).fate;
    if (fate == Fate::pruned || fate == Fate::done) {
      trial.fate = fate;
      trial.fate_reason = ruling.reason;
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) ends_.miss_metric(trial, error.message());
    trial.fate = trial.phase == TrialPhase::stopping ? Fate::lost : Fate::failed;
    trial.fate_reason = error.message();
  }
}

}  // namespace kolo::tune

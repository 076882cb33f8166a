// What trials say, and what is made of it.
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/host.h"
#include "tune/protocol/value_text.h"
#include "tune/study/controller.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

using Clock = std::chrono::steady_clock;
using Stored = store::TrialStatus;

/// A checkpoint's worth by "accuracy" or "min-loss"; greater is better.
std::optional<double> checkpoint_score(const Options& options, const Value& result) {
  constexpr std::string_view kMin = "min-";
  std::string_view attribute = options.checkpoint_score_attr;
  if (attribute.empty()) return std::nullopt;
  const bool smaller = attribute.starts_with(kMin);
  if (smaller) attribute.remove_prefix(kMin.size());
  const Value* value = result.find_path(attribute);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return smaller ? -value->as_number() : value->as_number();
}

/// Instead of a number a trial may say that it failed: a text that begins with F, "F_memory" say.
std::string failure_in(const Value& result, const std::vector<Objective>& objectives) {
  for (const auto& objective : objectives)
    if (const Value* value = result.find_path(objective.metric))
      if (value->is_string() && value->as_string().starts_with('F')) return value->as_string();
  return {};
}

}  // namespace

void Controller::on_report(TrialState& trial, Message& message) {
  auto& record = trial.record;
  const RunId id = trial.run_id();
  if (trial.ending != Ending::none && trial.ending != Ending::dropped) {
    answers_.push_back({id, {Reply::stop}});
    return;
  }
  const std::int64_t iteration = ++trial.run_iteration;
  if (iteration <= trial.repeat_until) {
    // It was reported before the trial was interrupted, and what followed then holds.
    if (!message.checkpoint.empty()) on_checkpoint(trial, message.checkpoint, iteration);
    const bool over = trial.stop_wanted || trial.ending == Ending::dropped;
    if (over && trial.ending == Ending::none) trial.ending = Ending::done;
    answers_.push_back({id, {over ? Reply::stop : Reply::proceed}});
    return;
  }
  const double seconds =
      trial.seconds_before + std::chrono::duration<double>(message.came - trial.began).count();
  Value result = message.metrics;
  auto& fields = result.as_dict();
  fields.insert_or_assign("training_iteration", iteration);
  fields.insert_or_assign("time_total_s", seconds);
  fields.try_emplace("time_this_iter_s", seconds - trial.last_seconds);
  const bool others_wait =
      static_cast<std::int64_t>(live_.size()) > running_ || steering_.wants_more();
  Ruling ruling;
  try {
    if (const auto failure = failure_in(result, steering_.objectives()); !failure.empty())
      throw Error(ErrorCode::cancelled, failure);
    ruling = steering_.report(record.number, result, others_wait);
    if (!steering_.objectives().empty()) trial.values = steering_.values_of(result);
  } catch (const Error& error) {
    --trial.run_iteration;
    trial.ending = Ending::failed;
    trial.end_reason = error.message();
    answers_.push_back({id, {Reply::stop}});
    trial.kill_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.grace);
    return;
  }
  store::ReportRecord& report = batch_.reports.emplace_back();
  report.seq = next_seq();
  report.trial = record.number;
  report.iteration = iteration;
  report.time = now();
  report.seconds = seconds;
  report.metrics = encode(message.metrics);
  report.action = static_cast<std::int64_t>(ruling.verdict);
  report.reason = ruling.reason;
  report.others_waited = others_wait;
  ++reports_;
  record.iteration = iteration;
  trial.last_metrics = report.metrics;
  trial.last_step = seconds - trial.last_seconds;
  trial.last_seconds = seconds;
  trial.last_time = report.time;
  if (!message.checkpoint.empty()) {
    on_checkpoint(trial, message.checkpoint, iteration);
    trial.checkpoints.back().score = checkpoint_score(options_, result);
  }
  note_best(trial);
  if (!options_.loggers.empty() || !options_.callbacks.empty() || !setup_.observers.empty())
    log_result(trial);
  follow(trial, ruling, message.saves_on_request);
  apply_rulings();
}

void Controller::follow(TrialState& trial, const Ruling& ruling, bool can_save) {
  const RunId id = trial.run_id();
  const auto end = [&](Ending how, const std::string& why, Reply reply) {
    if (trial.ending != Ending::dropped) trial.ending = how;
    trial.end_reason = why;
    answers_.push_back({id, {reply}});
    trial.kill_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.grace);
  };
  switch (ruling.verdict) {
    case Verdict::stop: end(Ending::pruned, ruling.reason, Reply::stop); return;
    case Verdict::rule:
    case Verdict::full: end(Ending::done, ruling.reason, Reply::stop); return;
    case Verdict::done: end(Ending::done, "", Reply::stop); return;
    case Verdict::clone:
      trial.clone = ruling;
      // Where the other has nothing to copy, it goes on from its own state, differently.
      end(Ending::cloned, ruling.reason,
          can_save && this->trial(*ruling.source).checkpoints.empty() ? Reply::pause : Reply::stop);
      return;
    case Verdict::pause: {
      const bool fresh =
          !trial.checkpoints.empty() && trial.checkpoints.back().iteration == trial.run_iteration;
      if (fresh || can_save || trial.ending == Ending::dropped) {
        end(Ending::paused, ruling.reason, Reply::pause);
        return;
      }
      // Without a checkpoint all would be lost: it waits where it is, and gives its place away.
      give_back(trial);
      trial.held = true;
      --counts_[static_cast<std::size_t>(trial.record.status)];
      trial.record.status = Stored::paused;
      ++counts_[static_cast<std::size_t>(trial.record.status)];
      event("pause", trial.record.number, ruling.reason + " (without a checkpoint)");
      changed(trial);
      return;
    }
    case Verdict::proceed: break;
  }
  if (trial.stop_wanted || trial.ending == Ending::dropped) {
    end(Ending::done, trial.end_reason, Reply::stop);
    return;
  }
  answers_.push_back({id, {Reply::proceed, ruling.save}});
}

void Controller::on_checkpoint(TrialState& trial, const std::filesystem::path& path,
                               std::int64_t iteration) {
  const std::int64_t seq = next_seq();
  trial.checkpoints.push_back({path, iteration, seq, std::nullopt});
  batch_.checkpoints.push_back({trial.record.number, seq, iteration, path.string(), now()});
  auto surplus = surplus_checkpoints(trial.checkpoints, options_.keep_checkpoints_num);
  for (auto place = surplus.rbegin(); place != surplus.rend(); ++place) {
    auto& old = trial.checkpoints[*place];
    batch_.removed_checkpoints.push_back(old.path.string());
    removals_.push_back(old.path);
    trial.checkpoints.erase(trial.checkpoints.begin() + static_cast<std::ptrdiff_t>(*place));
  }
  if (!options_.callbacks.empty())
    afterwards_.push_back([this, &trial] {
      for (auto& callback : options_.callbacks) callback->on_trial_save(info(trial));
    });
}

void Controller::on_end(TrialState& trial, Message& message) {
  executor_->forget(message.id);
  if (message.last_words && trial.ending == Ending::none && message.error.empty()) {
    // A program's last line: a report like any other, but nobody waits for the answer.
    Message words{Message::Kind::report, message.id};
    words.metrics = *message.last_words;
    on_report(trial, words);
    std::erase_if(answers_, [&](const auto& answer) { return answer.first == message.id; });
    if (trial.held || trial.ending == Ending::paused || trial.ending == Ending::cloned)
      trial.ending = Ending::done;
  }
  if (!message.checkpoint.empty()) on_checkpoint(trial, message.checkpoint, trial.run_iteration);
  give_back(trial);
  trial.active = trial.held = false;
  trial.kill_at.reset();
  auto& record = trial.record;
  changed(trial);
  const bool failed = !message.error.empty();
  // It may have died while it saved.
  if (failed) remove_unknown_checkpoints(record.directory, trial.checkpoints);
  const auto wait_as = [&](Stored status) {
    --counts_[static_cast<std::size_t>(record.status)];
    record.status = status;
    ++counts_[static_cast<std::size_t>(record.status)];
    afterwards_.push_back([this, &trial] {
      if (trial.log) log_safely(trial, [](TrialLog& log) { log.release(); });
    });
  };
  switch (trial.ending) {
    case Ending::pruned: end_trial(trial, Ending::pruned, trial.end_reason); return;
    case Ending::done: end_trial(trial, Ending::done, trial.end_reason); return;
    case Ending::failed: fail_run(trial, trial.end_reason); return;
    case Ending::dropped: wait_as(Stored::pending); return;
    case Ending::paused:
      if (failed) break;
      wait_as(Stored::paused);
      trial.repeat_until = record.iteration;
      event("pause", record.number, trial.end_reason);
      return;
    case Ending::cloned:
      apply_clone(trial, trial.clone.value());
      wait_as(Stored::paused);
      return;
    case Ending::none: break;
  }
  if (trial.stop_wanted) {
    end_trial(trial, Ending::done, trial.end_reason);
  } else if (failed) {
    fail_run(trial, message.error);
  } else if (trial.values.empty() && !steering_.objectives().empty()) {
    fail_run(trial,
             fmt::format("it ended without reporting '{}'", steering_.objectives().front().metric));
  } else {
    end_trial(trial, Ending::done, "");
  }
}

Value Controller::full_result(const TrialState& trial) const {
  static const std::string host = host_name();
  const auto& record = trial.record;
  Value result =
      trial.last_metrics.empty() ? Value(Value::Dict{}) : decode(trial.last_metrics, "a report");
  auto& fields = result.as_dict();
  fields.insert_or_assign("training_iteration", record.iteration);
  fields.insert_or_assign("time_total_s", trial.last_seconds);
  fields.try_emplace("time_this_iter_s", trial.last_step);
  fields.insert_or_assign("time_since_restore", trial.last_seconds - trial.seconds_before);
  fields.insert_or_assign("iterations_since_restore", record.iteration);
  fields.try_emplace(
      "done", trial.ended() || trial.ending == Ending::done || trial.ending == Ending::pruned);
  fields.insert_or_assign("timestamp", static_cast<std::int64_t>(trial.last_time));
  fields.insert_or_assign("date", date_text(trial.last_time));
  fields.insert_or_assign("trial_id", trial.id);
  fields.insert_or_assign("experiment_id", study_.name);
  fields.insert_or_assign("hostname", host);
  fields.try_emplace("pid", std::int64_t{::getpid()});
  return result;
}

void Controller::log_result(TrialState& trial) {
  // As it is now: further reports of the same step must not change it.
  Value result = full_result(trial);
  if (!trial.config.is_nothing()) result.as_dict().insert_or_assign("config", trial.config);
  afterwards_.push_back([this, &trial, result = std::move(result)] {
    log_safely(trial, [&](TrialLog& log) {
      log.result(result);
      unflushed_.push_back(&trial);
    });
    if (options_.callbacks.empty() && setup_.observers.empty()) return;
    for (auto& callback : options_.callbacks) callback->on_trial_result(info(trial), result);
    for (auto& observer : setup_.observers) observer->on_trial_result(info(trial), result);
  });
}

}  // namespace kolo::tune

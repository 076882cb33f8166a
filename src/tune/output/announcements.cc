#include "tune/output/announcements.h"

#include <algorithm>

#include "base/log.h"
#include "tune/trial/shown_config.h"

namespace kolo::tune {

Announcements::Announcements(TrialNaming naming, const Options& options,
                             std::vector<std::shared_ptr<Observer>> observers,
                             std::vector<std::string> metrics)
    : naming_(std::move(naming)),
      callbacks_(options.callbacks),
      observers_(std::move(observers)),
      files_(options.loggers, std::move(metrics),
             [this](const std::string& text) { message(text); }) {}

template <class Call>
void Announcements::tell(const Call& call) {
  for (auto& callback : callbacks_) call(*callback);
  for (auto& observer : observers_) call(*observer);
}

void Announcements::message(const std::string& text) {
  log::warning("study {}: {}", naming_.study, text);
  for (auto& observer : observers_) observer->on_message(text);
}

void Announcements::study_begins() {
  for (auto& callback : callbacks_) callback->on_study_begin(naming_.study);
}

void Announcements::study_ends() {
  for (auto& callback : callbacks_) callback->on_study_end();
}

void Announcements::step(const std::function<StudyView(std::size_t rows)>& view) {
  for (auto& observer : observers_) observer->on_step(view);
}

void Announcements::last_step(const std::function<StudyView(std::size_t rows)>& view) {
  for (auto& observer : observers_) observer->on_end(view);
}

std::chrono::milliseconds Announcements::patience() const {
  std::chrono::milliseconds shortest = std::chrono::seconds(1);
  for (const auto& observer : observers_) shortest = std::min(shortest, observer->patience());
  return shortest;
}

void Announcements::trial_started(StudyTrial& trial) {
  if (!watched()) return;
  later([this, &trial] {
    const TrialInfo info = info_of(trial, naming_);
    tell([&](StudyCallback& callback) { callback.on_trial_start(info); });
  });
}

void Announcements::trial_result(StudyTrial& trial) {
  if (!watched() && !files_.enabled()) return;
  // As it is now: further reports of the same step must not change it.
  Value result = full_result(trial, naming_);
  if (!trial.config.is_nothing())
    result.as_dict().insert_or_assign("config", shown_config(trial.config));
  later([this, &trial, iteration = trial.record.iteration, result = std::move(result)] {
    files_.result(trial, result);
    if (!watched()) return;
    TrialInfo info = info_of(trial, naming_);
    info.iteration = iteration;
    info.last_result = result;
    tell([&](StudyCallback& callback) { callback.on_trial_result(info, result); });
  });
}

void Announcements::trial_saved(StudyTrial& trial) {
  if (callbacks_.empty()) return;
  // As it is now, for the same reason.
  later([this, info = info_of(trial, naming_)] {
    for (auto& callback : callbacks_) callback->on_trial_save(info);
  });
}

void Announcements::trial_waits(StudyTrial& trial) {
  later([this, &trial] { files_.release(trial); });
}

void Announcements::run_failed(StudyTrial& trial, const std::string& error) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  later([this, &trial, error, count = trial.record.failures,
         time = std::chrono::duration<double>(now).count()] {
    files_.failure(trial, count, error, time);
  });
}

void Announcements::trial_ended(StudyTrial& trial) {
  later([this, &trial] {
    const bool failed = trial.phase == TrialPhase::failed;
    files_.end(trial, !failed);
    if (watched()) {
      const TrialInfo info = info_of(trial, naming_);
      tell([&](StudyCallback& callback) {
        failed ? callback.on_trial_error(info) : callback.on_trial_complete(info);
      });
    }
  });
}

bool Announcements::work_off(std::size_t leave, const std::function<bool()>& hurry) {
  while (!queue_.empty() && (queue_.size() > leave || !hurry())) {
    const auto call = std::move(queue_.front());
    queue_.pop_front();
    call();
  }
  return queue_.empty() && files_.flush();
}

}  // namespace kolo::tune

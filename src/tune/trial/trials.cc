#include "tune/trial/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.h"
#include "base/metric_order.h"
#include "tune/trial/checkpoint_paths.h"

namespace kolo::tune {
namespace {

TrialPhase phase_of(TrialStatus status) {
  switch (status) {
    case TrialStatus::pending:
    case TrialStatus::running: return TrialPhase::pending;
    case TrialStatus::paused: return TrialPhase::paused;
    case TrialStatus::terminated: return TrialPhase::terminated;
    case TrialStatus::error: return TrialPhase::failed;
  }
  throw_error(ErrorCode::corruption, "a trial has the unknown status {}",
              static_cast<std::int64_t>(status));
}

}  // namespace

StudyTrial& Trials::insert(std::unique_ptr<StudyTrial> trial) {
  auto& inserted = *kept_.emplace_hint(kept_.end(), size_, std::move(trial))->second;
  ++size_;
  inserted.record.status = row_of(inserted.phase).status;
  ++counts_[static_cast<std::size_t>(inserted.record.status)];
  if (!inserted.ended()) live_.emplace(inserted.record.number, &inserted);
  return inserted;
}

StudyTrial& Trials::add(std::unique_ptr<StudyTrial> trial) {
  auto& added = insert(std::move(trial));
  changed(added);
  return added;
}

StudyTrial& Trials::load(store::TrialRecord record, std::string id) {
  if (record.number != size())
    throw_error(ErrorCode::corruption, "trial {} is missing in the database", size());
  auto trial = std::make_unique<StudyTrial>();
  const TrialStatus stored = record.status;
  trial->phase = phase_of(stored);
  trial->record = std::move(record);
  trial->id = std::move(id);
  auto& loaded = insert(std::move(trial));
  if (loaded.record.status != stored) changed(loaded);
  return loaded;
}

void Trials::set_status(StudyTrial& trial, TrialPhase phase) {
  if (!may_follow(trial.phase, phase))
    throw_error(ErrorCode::internal, "trial {} is {} and cannot become {}", trial.record.number,
                row_of(trial.phase).name, row_of(phase).name);
  trial.phase = phase;
  const TrialStatus status = row_of(phase).status;
  const TrialStatus before = std::exchange(trial.record.status, status);
  if (has_ended(phase)) live_.erase(trial.record.number);
  if (status == before) return;
  --counts_[static_cast<std::size_t>(before)];
  ++counts_[static_cast<std::size_t>(status)];
  changed(trial);
}

StudyTrial* Trials::find(std::int64_t number) const {
  const auto found = kept_.find(number);
  return found == kept_.end() ? nullptr : found->second.get();
}

void Trials::let_go(std::int64_t number) {
  constexpr std::size_t kLastEnded = 64;  // more than a table of trials shows
  StudyTrial* trial = &at(number);
  trial->config = {};  // its record has it as text
  last_ended_.push_back(trial);
  if (last_ended_.size() <= kLastEnded) return;
  const StudyTrial* oldest = last_ended_.front();
  last_ended_.pop_front();
  const bool has_value = first_objective_ && !oldest->values.empty();
  if (has_value && (oldest == best_ || best_of_past_ == nullptr ||
                    better(oldest->values.front(), best_of_past_->values.front())))
    std::swap(oldest, best_of_past_);
  if (oldest != nullptr) kept_.erase(oldest->record.number);
}

std::vector<store::TrialRecord> Trials::take_changed() {
  std::vector<store::TrialRecord> records;
  records.reserve(changed_.size());
  for (const auto& [number, trial] : changed_) records.push_back(trial->record);
  changed_.clear();
  return records;
}

std::vector<StudyTrial*> Trials::live_list() const {
  std::vector<StudyTrial*> list;
  list.reserve(live_.size());
  for (const auto& [number, trial] : live_) list.push_back(trial);
  return list;
}

std::vector<std::int64_t> Trials::waiting() const {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, trial] : live_)
    if (trial->waiting()) numbers.push_back(number);
  return numbers;
}

bool Trials::any_run() const {
  return std::any_of(live_.begin(), live_.end(),
                     [](const auto& entry) { return has_run(entry.second->phase); });
}

void Trials::occupy(StudyTrial& trial, Grant place) {
  trial.grant = std::move(place);
  ++occupied_;
}

std::optional<Grant> Trials::vacate(StudyTrial& trial) {
  if (trial.grant) --occupied_;
  return std::exchange(trial.grant, std::nullopt);
}

bool Trials::better(double left, double right) const {
  if (!std::isfinite(left)) return false;
  if (!std::isfinite(right)) return true;
  return is_better_metric(left, right, *first_objective_ == search::Direction::minimize);
}

void Trials::note_values(const StudyTrial& trial) {
  if (!first_objective_ || trial.values.empty()) return;
  const double value = trial.values.front();
  if (best_ == nullptr ? std::isfinite(value) : better(value, best_value_)) {
    best_ = &trial;
    best_value_ = value;
  } else if (best_ == &trial && better(best_value_, value)) {
    // The best has become worse: another may be the best now.
    best_value_ = value;
    for (const auto& [number, other] : kept_) {
      if (other->values.empty() || !better(other->values.front(), best_value_)) continue;
      best_ = other.get();
      best_value_ = other->values.front();
    }
    if (!std::isfinite(best_value_)) best_ = nullptr;
  }
}

void Trials::note_checkpoint(const StudyTrial& trial, const std::filesystem::path& path) {
  const std::filesystem::path directory = trial.record.directory;
  if (!lies_inside(path, directory) && fault_of_checkpoint(path, directory).empty())
    elsewhere_.insert_or_assign(path, resolved(path));
}

bool Trials::may_remove(const StudyTrial& trial, const std::filesystem::path& path) const {
  const auto needs = [&path](const std::filesystem::path& kept) { return share_files(path, kept); };
  const auto needs_still = [&needs](const auto& named) {
    return needs(named.second) || (!resolved(named.first).empty() && needs(named.first));
  };
  return lies_inside(path, trial.record.directory) &&
         std::none_of(trial.checkpoints.begin(), trial.checkpoints.end(),
                      [&](const Checkpoint& kept) { return needs(kept.path); }) &&
         std::none_of(elsewhere_.begin(), elsewhere_.end(), needs_still);
}

std::vector<std::filesystem::path> Trials::leftovers_of(const StudyTrial& trial) const {
  auto paths = checkpoints_in(trial.record.directory);
  std::erase_if(paths, [&](const auto& path) { return !may_remove(trial, path); });
  return paths;
}

}  // namespace kolo::tune

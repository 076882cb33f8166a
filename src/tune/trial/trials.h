// The trials of a study: their phases, how many there are of each status, and which have changed.
//
// A trial that has ended is kept for as long as somebody may need it (let_go()). Of all others the
// database knows, and a study of a million trials has memory for the few that run.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kolo/search/trial.h"
#include "tune/output/observer.h"
#include "tune/trial/study_trial.h"

namespace kolo::tune {

class Trials {
 public:
  /// `first_objective` tells which trial is the best; without one there is none.
  explicit Trials(std::optional<search::Direction> first_objective = std::nullopt)
      : first_objective_(first_objective) {}

  /// A new trial. Its record.number must be size().
  StudyTrial& add(std::unique_ptr<StudyTrial> trial);
  /// A trial of an earlier session. A run of that session is gone, so RUNNING is read as pending.
  /// Throws corruption when trials before it are missing.
  StudyTrial& load(store::TrialRecord record, std::string id);

  /// The only way to change a phase: checks the table, and keeps record.status, counts() and live()
  /// in step. Throws internal for a change that the table does not have.
  void set_status(StudyTrial& trial, TrialPhase phase);
  /// The database has to be told about this trial.
  void changed(StudyTrial& trial) { changed_.insert_or_assign(trial.record.number, &trial); }
  [[nodiscard]] bool any_changed() const noexcept { return !changed_.empty(); }
  std::vector<store::TrialRecord> take_changed();

  /// Of a trial that is kept.
  [[nodiscard]] StudyTrial& at(std::int64_t number) { return *kept_.at(number); }
  /// None: the trial has ended and is not kept any more, or there was none.
  [[nodiscard]] StudyTrial* find(std::int64_t number) const;
  /// All trials that there were, kept or not.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// By number.
  [[nodiscard]] const std::map<std::int64_t, std::unique_ptr<StudyTrial>>& kept() const noexcept {
    return kept_;
  }
  /// The trial has ended, is in the database, and everybody has been told. It is kept among the
  /// last few and while it is the best of these, for who looks at the study.
  void let_go(std::int64_t number);
  /// Those that have not ended, by number.
  [[nodiscard]] const std::map<std::int64_t, StudyTrial*>& live() const noexcept { return live_; }
  /// A copy of live(), for loops that end trials.
  [[nodiscard]] std::vector<StudyTrial*> live_list() const;
  /// Numbers of those that may be started.
  [[nodiscard]] std::vector<std::int64_t> waiting() const;
  [[nodiscard]] bool any_run() const;
  [[nodiscard]] const TrialCounts& counts() const noexcept { return counts_; }

  /// Puts the trial on a place, or takes it away again. Returns the place that is free now.
  void occupy(StudyTrial& trial, Grant place);
  std::optional<Grant> vacate(StudyTrial& trial);
  [[nodiscard]] std::int64_t occupied() const noexcept { return occupied_; }

  /// To be called when trial.values has changed.
  void note_values(const StudyTrial& trial);
  /// None while no trial has a finite value.
  [[nodiscard]] const StudyTrial* best() const noexcept { return best_; }

  /// To be called for each checkpoint of a trial: others may not remove what it refers to.
  void note_checkpoint(const StudyTrial& trial, const std::filesystem::path& path);
  /// Whether the study owns the path and no checkpoint of any trial refers to it.
  [[nodiscard]] bool may_remove(const StudyTrial& trial, const std::filesystem::path& path) const;
  /// What a run that was killed has left in the trial's directory, for removal.
  [[nodiscard]] std::vector<std::filesystem::path> leftovers_of(const StudyTrial& trial) const;

 private:
  StudyTrial& insert(std::unique_ptr<StudyTrial> trial);
  [[nodiscard]] bool better(double left, double right) const;

  std::optional<search::Direction> first_objective_;
  std::map<std::int64_t, std::unique_ptr<StudyTrial>> kept_;
  std::int64_t size_ = 0;
  std::deque<StudyTrial*> last_ended_;  // those that were let go of last
  /// The best of those that were let go of, which stays: when the best of all becomes worse, this
  /// one may take its place.
  const StudyTrial* best_of_past_ = nullptr;
  std::map<std::int64_t, StudyTrial*> live_;
  std::map<std::int64_t, StudyTrial*> changed_;
  /// Checkpoints that trials have named outside of their own directories, and where each led to:
  /// a trial may change links later.
  std::map<std::filesystem::path, std::filesystem::path> elsewhere_;
  TrialCounts counts_{};
  std::int64_t occupied_ = 0;
  const StudyTrial* best_ = nullptr;
  double best_value_ = 0;
};

}  // namespace kolo::tune

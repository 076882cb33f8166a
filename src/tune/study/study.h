// A study from its start to its end: the one way in which tune::run, `kolo tune`, `kolo hps` and
// `kolo nas` begin one.
//
// The constructor does everything that can fail before a trial runs, in an order that leaves
// nothing behind where it fails: it checks the options, opens the database, finds the study or
// creates it as Options::resume says, claims it, so that no other process controls it, makes the
// executor, which waits until no process of an earlier session is left, and replays the journal.
// The destructor lets go of all of it in the reverse order.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kolo/tune/analysis.h"
#include "kolo/tune/options.h"
#include "store/study_store.h"
#include "tune/executor/executor.h"
#include "tune/output/observer.h"
#include "tune/study/study_claim.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

class Controller;
struct StudyState;

struct StudySetup {
  Options options;
  /// What the database keeps about the study. The Study itself fills in objectives, scheduler,
  /// and the search where it is "".
  StudySpec spec;
  /// Trials are named PREFIX_00007; "" = the trainable's name.
  std::string trial_prefix{};
  Resources per_trial{};  ///< of all ranks of a trial together
  /// Whether the study and each trial get a directory even where no logger writes into it.
  bool makes_directories = true;
  /// Whether a trial whose last value of an objective is not finite has failed.
  bool needs_finite_values = false;
  std::function<std::unique_ptr<TrialExecutor>(const ExecutorPlace&)> make_executor;
  std::vector<std::shared_ptr<Observer>> observers{};
  /// When it becomes true (a signal handler sets it), the study stops and can be resumed.
  const std::atomic<bool>* interrupted = nullptr;
  /// Must outlive the study.
  const Clock* clock = &system_clock();
  /// Opens the database; unset = the one that the options name.
  std::function<std::unique_ptr<store::Database>()> connect{};
};

class Study {
 public:
  /// Throws invalid_argument (options that contradict each other), already_exists, not_found
  /// (Options::resume), failed_precondition (another process controls the study), io.
  explicit Study(StudySetup setup);
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return record_.name; }
  /// The study as it was when this session began.
  [[nodiscard]] const store::StudyRecord& record() const noexcept { return record_; }
  [[nodiscard]] store::StudyStore& store() noexcept { return store_; }

  /// Runs trials to the end of the study, or until it is interrupted.
  void run();
  [[nodiscard]] bool was_interrupted() const;
  [[nodiscard]] Analysis analysis();

 private:
  struct Checked;
  explicit Study(Checked checked);
  void prepare(Checked& checked);
  void forget() noexcept;

  std::unique_ptr<store::Database> database_;
  store::StudyStore store_;
  store::StudyRecord record_;
  StudyClaim claim_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<TrialExecutor> executor_;
  std::unique_ptr<StudyState> state_;
  std::unique_ptr<Controller> controller_;
};

/// Throws invalid_argument for a name that a study cannot have.
void check_study_name(const std::string& name);

/// Where studies have their files: Options::local_dir, else $KOLO_RESULTS, else ~/kolo_results.
std::filesystem::path results_directory(const Options& options);
/// The database: Options::storage, else $KOLO_STORAGE, else kolo.db in results_directory().
std::string storage_url(const Options& options);

}  // namespace kolo::tune

// The study: asks the search what to try, has it run, and decides about every report.
//
// One thread does all of it, in steps. A step takes the messages that have come, lets the search
// decide, and notes what follows; then everything is written to the database in one transaction;
// then it is acted on. So nothing is acted on that is not stored, and a step costs one commit
// however many messages it takes.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kolo/tune/analysis.h"
#include "kolo/tune/options.h"
#include "store/study_store.h"
#include "tune/executor/executor.h"
#include "tune/output/observer.h"
#include "tune/study/population_policy.h"
#include "tune/study/resource_pool.h"
#include "tune/study/steering.h"
#include "tune/trial/trial_state.h"

namespace kolo::tune {

/// Why a trial failed that took longer than Options::trial_time_limit.
inline constexpr std::string_view kTimeoutFailure = "F_timeout";

struct ControllerSetup {
  Options options;
  std::string trainable_name = "trainable";
  Resources per_trial;            ///< with the ranks of a trial added up
  bool makes_directories = true;  ///< of trials, also where nothing is logged
  std::function<std::unique_ptr<TrialExecutor>(std::shared_ptr<Inbox>)> make_executor;
  std::vector<std::shared_ptr<Observer>> observers;
  /// Set (by a signal handler, say): the study stops and can be resumed.
  const std::atomic<bool>* interrupted = nullptr;
};

class Controller {
 public:
  /// Claims the study. Throws as tune::run does.
  Controller(ControllerSetup setup, store::StudyStore& store, store::StudyRecord study);
  ~Controller();

  /// To the end of the study, or until it is interrupted.
  void run();

  [[nodiscard]] Analysis analysis();
  [[nodiscard]] bool was_interrupted() const noexcept { return leaving_ == Leaving::interrupted; }

 private:
  enum class Leaving { no, finished, interrupted, failed };

  // controller.cc: the loop
  void step();
  [[nodiscard]] Deadline next_look() const;
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> time_limit_of(
      const TrialState& trial) const;
  void handle(Message& message);
  void look_at_requests();
  void check_time();
  void leave(Leaving how, const std::string& why);
  void check_end();
  void wait_for_the_last();
  /// Tries again while a database or a folder cannot be written, as long as storage_patience; then
  /// throws what `write` throws.
  void patiently(const std::function<void()>& write);
  void commit();
  void act();
  void work_off(std::size_t leave);
  void heartbeat_thread();

  // controller_trials.cc: trials begin, pause and end
  void fill();
  TrialState* create();
  [[nodiscard]] std::vector<std::int64_t> waiting() const;
  bool start_one();
  [[nodiscard]] bool somebody_leaves() const;
  void start(TrialState& trial, Grant grant);
  void give_back(TrialState& trial);
  void apply_rulings();
  void apply_clone(TrialState& trial, const Ruling& ruling);
  void write_policy();
  void end_trial(TrialState& trial, Ending how, const std::string& why);
  void fail_run(TrialState& trial, const std::string& error);
  void want_end(TrialState& trial, Ending how, const std::string& why);

  // controller_reports.cc: what trials say
  void on_report(TrialState& trial, Message& message);
  void follow(TrialState& trial, const Ruling& ruling, bool can_save);
  void on_checkpoint(TrialState& trial, const std::filesystem::path& path, std::int64_t iteration);
  void on_end(TrialState& trial, Message& message);
  [[nodiscard]] Value full_result(const TrialState& trial) const;
  void log_result(TrialState& trial);

  // controller_resume.cc
  void resume();
  void replay_journal();
  void forget_failure(TrialState& trial);
  void settle_after_replay(TrialState& trial);
  void rewrite_logs(TrialState& trial);
  void rewrite_stale_logs();

  // controller_view.cc
  [[nodiscard]] TrialInfo info(const TrialState& trial) const;
  [[nodiscard]] StudyView view(std::size_t rows) const;
  [[nodiscard]] bool better(const std::vector<double>& left,
                            const std::vector<double>& right) const;
  void note_best(const TrialState& trial);

  [[nodiscard]] double now() const;
  [[nodiscard]] double elapsed() const;
  std::int64_t next_seq() { return ++seq_; }
  void changed(TrialState& trial) { dirty_.insert_or_assign(trial.record.number, &trial); }
  void event(const std::string& kind, std::optional<std::int64_t> trial, const std::string& detail);
  TrialState& trial(std::int64_t number) { return *trials_.at(static_cast<std::size_t>(number)); }
  void log_safely(TrialState& trial, const std::function<void(TrialLog&)>& write);
  void note_unwritten(const std::exception& error);
  void say(const std::string& text);

  ControllerSetup setup_;
  const Options& options_;
  store::StudyStore& store_;
  store::StudyRecord study_;
  Steering steering_;
  PolicyFiles policy_files_;
  ResourcePool pool_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<TrialExecutor> executor_;

  std::vector<std::unique_ptr<TrialState>> trials_;  // by number
  std::map<std::int64_t, TrialState*> live_;         // not ended
  std::int64_t running_ = 0;
  std::int64_t counts_[5] = {};
  std::int64_t reports_ = 0;
  std::optional<std::int64_t> best_;  // trial, by its last report
  std::vector<double> best_values_;
  bool stalled_ = false;

  // What a step gathers.
  store::StudyBatch batch_;
  std::map<std::int64_t, TrialState*> dirty_;
  std::vector<std::pair<RunId, Answer>> answers_;
  std::vector<StartOrder> starts_;
  std::vector<RunId> stops_;
  std::vector<std::filesystem::path> removals_;
  std::deque<std::function<void()>> afterwards_;  // logs and callbacks, when there is time
  std::vector<TrialState*> unflushed_;

  std::int64_t seq_ = 0;
  std::int64_t logged_ = 0;
  bool logs_complete_ = true;
  std::set<std::int64_t> stale_logs_;  // trials whose files may miss something, after a resume
  double elapsed_before_ = 0;
  std::chrono::steady_clock::time_point session_began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_write_ = session_began_;
  bool look_for_requests_ = true;
  Leaving leaving_ = Leaving::no;
  std::string leaving_why_;
  std::string first_error_;
  struct Watcher;
  std::unique_ptr<Watcher> watcher_;  // for requests
};

}  // namespace kolo::tune

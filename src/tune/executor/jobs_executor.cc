// One thread does all work with the database and the files, and another one waits for notifications
// that jobs have ended. A pass creates jobs, reads reports, kills jobs and gathers ends, in this
// order. Each order leaves its list only when it is done, so that a pass that failed is repeated
// with the rest. After a create that failed nobody knows whether it took place: the jobs are then
// looked for by the key in their data before they are created again. Jobs are also looked at every
// two seconds, because a notification may be lost. Reports that the study has from an earlier
// session are counted off and not told again.
#include "tune/executor/jobs_executor.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <random>
#include <thread>

#include "base/env.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/retry.h"
#include "base/subprocess.h"
#include "base/words.h"
#include "jobs/database/body.h"
#include "jobs/database/explain.h"
#include "jobs/database/schema.h"
#include "kolo/jobs.h"
#include "tune/executor/program_run.h"
#include "tune/executor/trial_environment.h"
#include "tune/output/trial_log.h"
#include "tune/protocol/report_file.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using jobs::JobId;
using jobs::JobState;

/// Between looks at the reports of running jobs.
constexpr auto kLookAtReports = 500ms;
/// The same, where there are more than the study could take at once.
constexpr auto kLookAgain = 20ms;
/// Between looks at the states of jobs, should a notification be lost.
constexpr auto kLookAtJobs = 2s;

/// A job begins in a folder of its own. The program begins where the study has its programs begin,
/// and its output goes to the trial's directory; ranks but the first have files of their own.
constexpr const char* kStart =
    R"(rank=${KOLO_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}}}; )"
    R"([ "$rank" = 0 ] && rank= || rank=.$rank; )"
    R"(echo "the output is in $KOLO_TRIAL_DIR"; )"
    R"(cd "$0" && exec "$@" >>"$KOLO_TRIAL_DIR/stdout$rank" 2>>"$KOLO_TRIAL_DIR/stderr$rank")";

/// What the data of a job say about its trial, for this session and for later ones.
struct TrialMark {
  std::string study;
  std::string key;  ///< of the one order that the job is for
  std::int64_t trial = 0;
  std::int64_t iteration = 0;  ///< of which it began
  std::string reports;
  std::uintmax_t out_from = 0, err_from = 0;

  [[nodiscard]] std::string text() const {
    return json_text(Json{{"search", study},
                          {"key", key},
                          {"trial", trial},
                          {"iteration", iteration},
                          {"reports", reports},
                          {"out_from", out_from},
                          {"err_from", err_from}});
  }
  /// None where the job is no trial of the study.
  static std::optional<TrialMark> in(const jobs::Job& job, const std::string& study) {
    const Json data = try_parse_json(job.data).value_or(Json());
    if (!data.is_object() || data.value("search", Json()) != study ||
        !data.value("trial", Json()).is_number_integer())
      return std::nullopt;
    return TrialMark{study,
                     data.value("key", ""),
                     data.at("trial").get<std::int64_t>(),
                     data.value("iteration", std::int64_t{0}),
                     data.value("reports", ""),
                     data.value("out_from", std::uintmax_t{0}),
                     data.value("err_from", std::uintmax_t{0})};
  }
};

class JobsExecutor final : public TrialExecutor {
 public:
  explicit JobsExecutor(ExecutorSetup setup)
      : setup_(std::move(setup)),
        place_(setup_.jobs ? *setup_.jobs
                           : find_jobs_place(setup_.workflow.empty() ? setup_.place.study
                                                                     : setup_.workflow)),
        inbox_(setup_.place.inbox),
        jobs_(jobs::JobDatabase::open(place_.database, place_.patience)),
        watch_(body_of(jobs_).store->watch(jobs::kEndsChannel)) {
    meet_launchers();
    add_application();
    for (const auto& job : jobs_.find({.workflow = place_.workflow}))
      if (const auto mark = TrialMark::in(job, study()); mark && job.state != JobState::user_killed)
        earlier_.insert_or_assign(mark->trial, Earlier{job.id, *mark});
    worker_ = std::thread([this] { work(); });
    watcher_ = std::thread([this] { watch(); });
  }

  ~JobsExecutor() override {
    {
      const MutexLock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    watch_->cancel();
    watcher_.join();
    worker_.join();
  }

  void start(StartOrder order) override {
    const MutexLock lock(mutex_);
    orders_.push_back(std::move(order));
    changed_.notify_all();
  }
  void answer(RunId id, Answer answer) override {
    if (answer.reply != Reply::proceed) stop(id);
  }
  void study_is_interrupted() override {
    const MutexLock lock(mutex_);
    leaves_jobs_ = place_.study_job != 0;
  }
  void stop(RunId id) override { end_soon({id, /*is_asked=*/true}); }
  void kill(RunId id) override { end_soon({id, /*is_asked=*/false}); }
  void forget(RunId /*id*/) override {}
  [[nodiscard]] bool can_kill() const noexcept override { return true; }
  /// A job waits in a queue for longer than it runs.
  [[nodiscard]] bool limits_time() const noexcept override { return true; }

 private:
  struct Kill {
    RunId id;
    bool is_asked = false;  // to end as a trial may, which then is no failure
  };
  void end_soon(Kill kill) {
    const MutexLock lock(mutex_);
    kills_.push_back(kill);
    changed_.notify_all();
  }

  struct Earlier {
    JobId job{};
    TrialMark mark;
  };
  struct Task {
    ProgramRun run;
    JobId job{};
    ReportFile reports;
    RunOutput err{};
    std::string refusal{};  // why its reports cannot be read
    bool is_told_to_end = false;
    bool is_asked = false;
  };

  [[nodiscard]] const std::string& study() const { return setup_.place.unique_name; }
  [[nodiscard]] std::string application() const { return "trials-" + study(); }

  /// A study that is a job itself does not keep a node from its trials. If no trial can ever run,
  /// it says so now instead of waiting for ever.
  void meet_launchers() {
    const JobId own{place_.study_job};
    if (own != JobId{}) jobs_.yield_place(own);
    const auto prospect = jobs::prospect_of(jobs_, shaped_job(), own);
    if (prospect.able > 0) return;
    if (prospect.alive == 0)
      log::warning("no launcher works on {}; trials wait until you start one with kolo launcher",
                   place_.database.string());
    else if (own == JobId{})
      log::warning("trials wait for a launcher that can run them; {}", prospect.obstacle);
    else
      throw_error(ErrorCode::failed_precondition, "no trial can ever run here; {}",
                  prospect.obstacle);
  }

  /// Each study has an application of its own, so that it changes none of the user's.
  void add_application() {
    const auto directory = setup_.directory.empty() ? fs::current_path() : setup_.directory;
    jobs::Application application;
    application.name = this->application();
    application.executable = shell_line({"/bin/sh", "-c", kStart, directory.string()});
    application.envscript = place_.envscript;
    application.description = "trials of the study " + study();
    for (const auto& other : jobs_.applications())
      if (other.name == application.name && other.description != application.description)
        throw_error(ErrorCode::already_exists,
                    "the application '{}' in {} was not made by this study; rename or remove it",
                    other.name, place_.database.string());
    jobs_.set_application(application);
  }

  void watch() {
    for (;;) {
      bool any = false;
      try {
        any = watch_->wait(Deadline::after(60s));
      } catch (const Error&) {
        any = true;  // look instead
      }
      const MutexLock lock(mutex_);
      if (closing_) return;
      look_ = look_ || any;
      if (any) changed_.notify_all();
    }
  }

  /// Everything that touches the database or the files, in one thread.
  void work() {
    MutexLock lock(mutex_);
    while (!closing_) {
      const auto pause = tasks_.empty()     ? kLookAtJobs
                         : waits_for_study_ ? kLookAgain
                                            : kLookAtReports;
      changed_.wait_for(lock, pause, [this]() KOLO_REQUIRES(mutex_) {
        return closing_ || look_ || !orders_.empty() || !kills_.empty();
      });
      if (closing_) return;
      auto orders = std::exchange(orders_, {});
      auto kills = std::exchange(kills_, {});
      const bool leaves_jobs = leaves_jobs_;
      const auto now = std::chrono::steady_clock::now();
      const bool look = std::exchange(look_, false) || now >= next_look_;
      lock.unlock();
      if (look) next_look_ = now + kLookAtJobs;
      bool done = false;
      try {
        done = retry_.attempt([&] {
          create(orders);
          waits_for_study_ = false;
          for (auto& [trial, task] : tasks_) read_reports(task, /*has_ended=*/false);
          end(kills, leaves_jobs);
          if (look) gather();
        });
      } catch (const std::exception& error) {
        done = true;  // it does not pass
        const std::string why = fmt::format("the job database failed: {}", error.what());
        for (const auto& [trial, task] : std::exchange(tasks_, {})) fail(task.run.id, why);
        for (const auto& order : orders) fail(order.id, why);
      }
      lock.lock();
      if (done) continue;
      // What was not done yet is still in the lists.
      orders_.insert(orders_.begin(), orders.begin(), orders.end());
      kills_.insert(kills_.begin(), kills.begin(), kills.end());
      changed_.wait_until(lock, retry_.next(), [this]() KOLO_REQUIRES(mutex_) { return closing_; });
      look_ = true;
    }
  }

  void fail(RunId id, const std::string& why) {
    Message end{Message::Kind::ended, id};
    end.error = why;
    inbox_->put(std::move(end));
  }

  /// Each order leaves the list as soon as its trial has a job or has ended: what is left after an
  /// error is what has to be tried again.
  void create(std::vector<StartOrder>& orders) {
    if (orders.empty()) return;
    if (create_in_doubt_) find_created(orders);
    std::vector<jobs::Job> created;
    std::vector<TrialMark> marks;
    for (auto order = orders.begin(); order != orders.end();) {
      if (continues_earlier(*order)) {
        order = orders.erase(order);
        continue;
      }
      try {
        TrialMark mark = mark_of(*order);
        created.push_back(job_for(*order, mark));
        marks.push_back(std::move(mark));
        ++order;
      } catch (const std::exception& error) {  // whatever it is, only this trial is to blame
        fail(order->id, error.what());
        order = orders.erase(order);
      }
    }
    if (created.empty()) return;
    try {
      create_in_doubt_ = true;
      const auto ids = jobs_.create(created);
      for (std::size_t i = 0; i < ids.size(); ++i)
        wait_for(orders[i], ids[i], marks[i], ReportFile::Past::none);
    } catch (const Error& error) {
      if (Retry::may_pass(error)) throw;
      for (const auto& order : orders) fail(order.id, error.message());
    }
    create_in_doubt_ = false;
    orders.clear();
  }

  /// A run that was begun before this session is waited for; one that is begun again is new.
  bool continues_earlier(const StartOrder& order) {
    const auto earlier = earlier_.find(order.id.trial);
    if (earlier == earlier_.end()) return false;
    const auto& [job, mark] = earlier->second;
    const bool is_here =
        mark.reports.empty() || fs::path(mark.reports).parent_path() == order.directory;
    if (is_here)
      wait_for(order, job, mark, ReportFile::Past::any);
    else
      jobs_.kill({job}, false, "the study was renamed, and the trial has another directory");
    earlier_.erase(earlier);
    return is_here;
  }

  /// A server may have created the jobs and gone away before it said so.
  void find_created(std::vector<StartOrder>& orders) {
    std::map<std::string, Earlier> found;
    for (const auto& job : jobs_.find({.workflow = place_.workflow}))
      if (const auto mark = TrialMark::in(job, study())) found[mark->key] = {job.id, *mark};
    std::erase_if(orders, [&](const StartOrder& order) {
      const auto job = found.find(key_of(order));
      if (job == found.end()) return false;
      wait_for(order, job->second.job, job->second.mark, ReportFile::Past::none);
      return true;
    });
  }

  void wait_for(const StartOrder& order, JobId job, const TrialMark& mark, ReportFile::Past past) {
    Task task{.run = {order.id}, .job = job, .reports = ReportFile(mark.reports, past)};
    task.run.known = std::max(std::int64_t{0}, order.iteration - mark.iteration);
    task.run.out.path = order.directory / "stdout";
    task.run.out.from = mark.out_from;
    task.err.path = order.directory / "stderr";
    task.err.from = mark.err_from;
    tasks_.insert_or_assign(order.id.trial, std::move(task));
  }

  [[nodiscard]] std::string key_of(const StartOrder& order) const {
    return fmt::format("{:08x}-{}-{}", session_, order.id.trial, order.id.run);
  }
  [[nodiscard]] TrialMark mark_of(const StartOrder& order) const {
    const std::string key = key_of(order);
    return {study(),
            key,
            order.id.trial,
            order.iteration,
            (order.directory / ("reports-" + key + ".jsonl")).string(),
            RunOutput(order.directory / "stdout").from,
            RunOutput(order.directory / "stderr").from};
  }

  /// A job of the size of a trial.
  [[nodiscard]] jobs::Job shaped_job() const {
    const TrialShape& shape = setup_.shape;
    jobs::Job job;
    job.workflow = place_.workflow;
    job.num_nodes = shape.nodes;
    job.ranks_per_node = shape.ranks_per_node;
    job.threads_per_rank = shape.threads_per_rank;
    job.gpus_per_rank = shape.gpus / shape.ranks_per_node;
    job.node_packing_count = shape.trials_per_node;
    return job;
  }

  jobs::Job job_for(const StartOrder& order, const TrialMark& mark) const {
    write_params(order.directory, order.config);
    const TrialCommand command = setup_.command(order);
    jobs::Job job = shaped_job();
    job.name = "task" + std::to_string(order.id.trial);
    job.application = application();
    job.args = shell_line(command.argv);
    job.environ = trial_environment(order, mark.reports);
    job.environ.insert(job.environ.end(), command.environment.begin(), command.environment.end());
    job.auto_timeout_retry = false;  // the study continues it
    if (setup_.time_limit) {
      job.time_limit_seconds = setup_.time_limit->count();
      job.wall_time_minutes = std::max(1, static_cast<int>(setup_.time_limit->count() / 60));
    }
    job.data = mark.text();
    return job;
  }

  ReportFile::Rest read_reports(Task& task, bool has_ended) {
    auto rest = ReportFile::Rest::none;
    try {
      rest = task.run.hear(task.reports, has_ended, *inbox_);
      if (rest == ReportFile::Rest::too_much) task.refusal = task.run.failure;
      waits_for_study_ = waits_for_study_ || rest == ReportFile::Rest::more;
    } catch (const std::exception& error) {  // whatever it is, only this trial is to blame
      task.run.refuse(error.what());
      task.refusal = error.what();
    }
    if (task.refusal.empty() || task.is_told_to_end || has_ended) return rest;
    jobs_.kill({task.job}, false, "the study cannot read its reports: " + task.refusal);
    task.is_told_to_end = true;
    return rest;
  }

  /// Kills the jobs, or leaves them for the next session of the study to find.
  void end(std::vector<Kill>& kills, bool leaves_jobs) {
    std::vector<JobId> ids;
    std::vector<Task*> told;
    for (const auto& [id, is_asked] : kills) {
      const auto found = tasks_.find(id.trial);
      if (found == tasks_.end() || found->second.run.id != id) continue;
      if (leaves_jobs) {
        inbox_->put({Message::Kind::ended, id});
        tasks_.erase(found);
      } else if (!found->second.is_told_to_end &&
                 std::find(ids.begin(), ids.end(), found->second.job) == ids.end()) {
        found->second.is_asked = is_asked;
        told.push_back(&found->second);
        ids.push_back(found->second.job);
      }
    }
    if (!ids.empty()) jobs_.kill(ids, false, "ended by the study " + setup_.place.study);
    for (Task* task : told) task->is_told_to_end = true;
    kills.clear();
  }

  /// Tells of the jobs that have ended.
  void gather() {
    if (tasks_.empty()) return;
    jobs::JobFilter filter;
    for (const auto& [trial, task] : tasks_) filter.ids.push_back(task.job);
    std::map<JobId, jobs::Job> found;
    for (auto& job : jobs_.find(filter)) found.emplace(job.id, std::move(job));
    for (auto it = tasks_.begin(); it != tasks_.end();) {
      Task& task = it->second;
      const auto job = found.find(task.job);
      if (job != found.end() && !jobs::is_end(job->second.state)) {
        ++it;
        continue;
      }
      // Of one that was told to end nobody waits for the rest.
      if (read_reports(task, /*has_ended=*/true) == ReportFile::Rest::more &&
          !task.is_told_to_end) {
        next_look_ = {};
        ++it;
        continue;
      }
      Message end = task.run.end(
          job == found.end() ? fmt::format("job {} was removed from the database", number_of(task))
                             : error_of(job->second, task),
          task.err, setup_);
      end.was_cut_off = job != found.end() && was_cut_off(job->second);
      inbox_->put(std::move(end));
      it = tasks_.erase(it);
    }
  }

  static std::int64_t number_of(const Task& task) { return static_cast<std::int64_t>(task.job); }

  /// "" = it did not fail.
  std::string error_of(const jobs::Job& job, const Task& task) {
    if (job.state == JobState::job_finished) return {};
    if (job.state == JobState::user_killed && task.is_asked) return {};
    if (job.state == JobState::user_killed)
      return fmt::format("F_killed: job {} was killed", number_of(task));
    std::string reason;
    for (const auto& entry : jobs_.history(job.id)) {
      if (entry.state == JobState::run_timeout)
        return fmt::format("{}: it ran longer than its limit of {:.5g} s", kTimeoutFailure,
                           job.time_limit_seconds);
      if (reason.empty() && entry.state == JobState::failed) reason = entry.reason;
    }
    if (job.return_code) {
      constexpr int kSignal = 128;  // as shells have it
      const int code = *job.return_code;
      reason = "the program " + describe_wait_status(code > kSignal ? code - kSignal : code << 8);
    }
    return fmt::format("job {}: {}", number_of(task), reason);
  }

  /// Whether its launcher's time was over, and not its own.
  bool was_cut_off(const jobs::Job& job) {
    if (job.state == JobState::job_finished || job.state == JobState::user_killed) return false;
    double began = 0, timeout = 0;
    for (const auto& entry : jobs_.history(job.id)) {
      if (entry.state == JobState::running) began = entry.time;
      if (entry.state == JobState::run_timeout) timeout = entry.time;
    }
    const bool was_its_own =
        job.time_limit_seconds > 0 && timeout - began >= job.time_limit_seconds;
    return timeout > 0 && !was_its_own;
  }

  const ExecutorSetup setup_;
  const JobsPlace place_;
  std::shared_ptr<Inbox> inbox_;
  // Of the working thread:
  jobs::JobDatabase jobs_;
  std::map<std::int64_t, Task> tasks_;       // under way, by trial
  std::map<std::int64_t, Earlier> earlier_;  // jobs of an earlier session, by trial
  const std::uint32_t session_ = std::random_device()();
  Retry retry_{"the job database", system_clock(), place_.retry_limit};
  bool create_in_doubt_ = false;  // nobody knows whether the jobs were created
  std::chrono::steady_clock::time_point next_look_{};
  bool waits_for_study_ = false;  // there are more reports than it could take at once

  std::unique_ptr<store::Watch> watch_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<StartOrder> orders_ KOLO_GUARDED_BY(mutex_);
  std::vector<Kill> kills_ KOLO_GUARDED_BY(mutex_);
  bool look_ KOLO_GUARDED_BY(mutex_) = false;
  bool leaves_jobs_ KOLO_GUARDED_BY(mutex_) = false;  // when trials are stopped
  bool closing_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread worker_, watcher_;
};

}  // namespace

JobsPlace find_jobs_place(const std::string& otherwise) {
  JobsPlace place;
  auto folder = environment("KOLO_DB");
  if (!folder || folder->empty())
    throw_error(ErrorCode::failed_precondition,
                "the executor 'jobs' needs a job database: make one with `kolo init DIR` and set "
                "KOLO_DB=DIR, for example by `eval \"$(kolo activate DIR)\"`");
  place.database = *folder;
  place.workflow = otherwise;
  if (const auto own = environment("KOLO_JOB_ID")) {
    std::int64_t number = 0;
    std::from_chars(own->data(), own->data() + own->size(), number);
    auto jobs = jobs::JobDatabase::open(place.database);
    const auto job = jobs.job(JobId{number});
    place.workflow = job.workflow;
    place.study_job = number;
    place.study_nodes = job.num_nodes;
    place.envscript = jobs.application(job.application).envscript;
  }
  return place;
}

std::unique_ptr<TrialExecutor> make_jobs_executor(ExecutorSetup setup) {
  return std::make_unique<JobsExecutor>(std::move(setup));
}

}  // namespace kolo::tune

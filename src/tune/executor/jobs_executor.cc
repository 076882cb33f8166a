#include "tune/executor/jobs_executor.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/words.h"
#include "jobs/database/body.h"
#include "jobs/database/explain.h"
#include "jobs/database/schema.h"
#include "kolo/jobs.h"
#include "search/space/json_value.h"
#include "tune/executor/trial_environment.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using jobs::JobId;
using jobs::JobState;

/// Between looks, should a notification be lost.
constexpr auto kLook = 2s;

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

class JobsExecutor final : public TrialExecutor {
 public:
  explicit JobsExecutor(ExecutorSetup setup)
      : setup_(std::move(setup)),
        place_(setup_.jobs ? *setup_.jobs : find_jobs_place(setup_.place.study)),
        inbox_(setup_.place.inbox),
        jobs_(jobs::JobDatabase::open(place_.database, place_.patience)),
        watch_(body_of(jobs_).store->watch(jobs::kEndsChannel)) {
    meet_launchers();
    add_application();
    find_earlier();
    worker_ = std::thread([this] { work(); });
    watcher_ = std::thread([this] { watch(); });
  }

  ~JobsExecutor() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    watch_->cancel();
    watcher_.join();
    worker_.join();
  }

  void start(StartOrder order) override {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    changed_.notify_all();
  }
  void answer(RunId /*id*/, Answer /*answer*/) override {}  // jobs report when they end
  void study_is_interrupted() override {
    const std::lock_guard lock(mutex_);
    leaves_jobs_ = place_.study_job != 0;
  }
  void stop(RunId id) override { kill(id); }
  void kill(RunId id) override {
    const std::lock_guard lock(mutex_);
    kills_.push_back(id);
    changed_.notify_all();
  }
  void forget(RunId /*id*/) override {}
  [[nodiscard]] bool can_kill() const noexcept override { return true; }

 private:
  struct Task {
    RunId id;
    JobId job{};
    fs::path result;
  };

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

  /// Each study has an application of its own, which starts the words of a job in the directory
  /// where the study starts programs: a job itself begins in a folder of its own.
  [[nodiscard]] std::string application() const { return "trials-" + setup_.place.unique_name; }

  void add_application() {
    const auto directory = setup_.directory.empty() ? fs::current_path() : setup_.directory;
    jobs::Application application;
    application.name = this->application();
    application.executable =
        joined_words({"/bin/sh", "-c", R"(cd "$0" && exec "$@")", directory.string()});
    application.envscript = place_.envscript;
    application.description = "trials of the study " + setup_.place.unique_name;
    for (const auto& other : jobs_.applications())
      if (other.name == application.name && other.description != application.description)
        throw_error(ErrorCode::already_exists,
                    "the application '{}' in {} was not made by this study; rename or remove it",
                    other.name, place_.database.string());
    jobs_.set_application(application);
  }

  /// Jobs of an earlier session of this study.
  void find_earlier() {
    for (const auto& job : jobs_.find({.workflow = place_.workflow})) {
      const Json data = try_parse_json(job.data).value_or(Json());
      if (!data.is_object() || data.value("search", Json()) != setup_.place.unique_name) continue;
      if (job.state == JobState::user_killed) continue;  // the session ended it
      if (const auto trial = data.find("trial"); trial != data.end() && trial->is_number_integer())
        earlier_[trial->get<std::int64_t>()] = job.id;
    }
  }

  void watch() {
    for (;;) {
      bool any = false;
      try {
        any = watch_->wait(Deadline::after(60s));
      } catch (const Error&) {
        any = true;  // look instead
      }
      std::unique_lock lock(mutex_);
      if (closing_) return;
      if (any) {
        look_ = true;
        changed_.notify_all();
      }
    }
  }

  /// Everything that touches the database, in one thread; it waits for events.
  void work() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
      changed_.wait_for(
          lock, kLook, [this] { return closing_ || look_ || !orders_.empty() || !kills_.empty(); });
      if (closing_) return;
      auto orders = std::exchange(orders_, {});
      auto kills = std::exchange(kills_, {});
      look_ = false;
      lock.unlock();
      bool done = false;
      try {
        done = retry_.attempt([&] {
          create(orders);
          end(kills);
          gather();
        });
      } catch (const Error& error) {
        done = true;  // it does not pass
        for (const auto& [trial, task] : std::exchange(tasks_, {}))
          fail(task.id, "the job database failed: " + error.message());
      }
      lock.lock();
      if (done) continue;
      // What was not done yet is still in the lists.
      orders_.insert(orders_.begin(), orders.begin(), orders.end());
      kills_.insert(kills_.begin(), kills.begin(), kills.end());
      changed_.wait_until(lock, retry_.next(), [this] { return closing_; });
      look_ = true;
    }
  }

  void fail(RunId id, const std::string& why) {
    Message end{Message::Kind::ended, id};
    end.error = why;
    inbox_->put(std::move(end));
  }

  /// Each order leaves the list as soon as its trial has a job or has ended: what is left
  /// after an error is what has to be tried again.
  void create(std::vector<StartOrder>& orders) {
    if (orders.empty()) return;
    if (create_in_doubt_) find_created(orders);
    std::vector<jobs::Job> created;
    for (auto& order : std::exchange(orders, {})) {
      // A run that was begun before this session is waited for; one that is begun again is new.
      const auto earlier = earlier_.find(order.id.trial);
      if (earlier != earlier_.end()) {
        wait_for(order, earlier->second);
        earlier_.erase(earlier);
        continue;
      }
      try {
        created.push_back(job_for(order));
        orders.push_back(std::move(order));
      } catch (const Error& error) {
        fail(order.id, error.message());
      }
    }
    if (created.empty()) return;
    try {
      create_in_doubt_ = true;
      const auto ids = jobs_.create(created);
      for (std::size_t i = 0; i < ids.size(); ++i) wait_for(orders[i], ids[i]);
    } catch (const Error& error) {
      if (Retry::may_pass(error)) throw;
      for (const auto& order : orders) fail(order.id, error.message());
    }
    create_in_doubt_ = false;
    orders.clear();
  }

  /// A server may have created the jobs and gone away before it said so.
  void find_created(std::vector<StartOrder>& orders) {
    const auto found = jobs_.find({.workflow = place_.workflow});
    std::erase_if(orders, [&](const StartOrder& order) {
      const std::string data = data_of(order);
      const auto job = std::find_if(found.begin(), found.end(),
                                    [&](const jobs::Job& one) { return one.data == data; });
      if (job == found.end()) return false;
      wait_for(order, job->id);
      return true;
    });
  }

  void wait_for(const StartOrder& order, JobId job) {
    tasks_.insert_or_assign(order.id.trial, Task{order.id, job, result_file(order)});
  }

  /// Names the trial for later sessions, and this very order for this one.
  [[nodiscard]] std::string data_of(const StartOrder& order) const {
    return json_text(Json{{"search", setup_.place.unique_name},
                          {"trial", order.id.trial},
                          {"run", order.id.run},
                          {"session", session_}});
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

  jobs::Job job_for(const StartOrder& order) const {
    write_file_atomically(config_file(order),
                          json_text(search::json_from_value(order.config), 2) + "\n");
    std::error_code ignored;
    if (!setup_.last_line_reports) fs::remove(result_file(order), ignored);
    const TrialCommand command = setup_.command(order);
    jobs::Job job = shaped_job();
    job.name = "task" + std::to_string(order.id.trial);
    job.application = application();
    job.args = joined_words(command.argv);
    job.environ = environment_of(order, command);
    job.auto_timeout_retry = false;  // the study continues it
    if (setup_.time_limit) {
      job.time_limit_seconds = setup_.time_limit->count();
      job.wall_time_minutes = std::max(1, static_cast<int>(setup_.time_limit->count() / 60));
    }
    job.data = data_of(order);
    return job;
  }

  /// Devices are the launcher's to give.
  static std::vector<std::string> environment_of(const StartOrder& order,
                                                 const TrialCommand& command) {
    auto entries = trial_environment(order);
    std::erase_if(entries, [](const std::string& entry) {
      return entry.starts_with("CUDA_VISIBLE_DEVICES=");
    });
    entries.insert(entries.end(), command.environment.begin(), command.environment.end());
    return entries;
  }

  void end(std::vector<RunId>& kills) {
    std::vector<JobId> ids;
    for (const RunId id : kills) {
      const auto found = tasks_.find(id.trial);
      if (found == tasks_.end() || !(found->second.id == id)) continue;
      if (leaves_jobs_) {  // the next session of the study finds the job
        inbox_->put({Message::Kind::ended, id});
        tasks_.erase(found);
      } else {
        ids.push_back(found->second.job);
      }
    }
    if (!ids.empty()) jobs_.kill(ids, false);
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
      const auto job = found.find(it->second.job);
      if (job != found.end() && !jobs::is_end(job->second.state)) {
        ++it;
        continue;
      }
      Message end{Message::Kind::ended, it->second.id};
      if (job == found.end())
        end.error = fmt::format("job {} was removed from the database",
                                static_cast<std::int64_t>(it->second.job));
      else
        read_end(job->second, it->second, end);
      inbox_->put(std::move(end));
      it = tasks_.erase(it);
    }
  }

  void read_end(const jobs::Job& job, const Task& task, Message& end) {
    const auto number = static_cast<std::int64_t>(job.id);
    const fs::path output = jobs_.folder_of(job) / (job.name + ".out");
    if (job.state == JobState::user_killed) {
      end.error = fmt::format("F_killed: job {} was killed", number);
    } else if (job.state != JobState::job_finished) {
      bool timeout = false;
      for (const auto& entry : jobs_.history(job.id))
        timeout = timeout || entry.state == JobState::run_timeout;
      end.was_cut_off = was_cut_off(job);
      end.error =
          timeout ? std::string(kTimeoutFailure)
                  : fmt::format("F_job: job {} failed; {} has its output", number, output.string());
    } else if (setup_.last_line_reports) {
      end.last_words = parse_last_words(read_output(output), setup_.metric);
    } else {
      try {
        end.last_words = decode(read_file(task.result), task.result.string());
      } catch (const Error& error) {
        end.error =
            fmt::format("F_result: job {} ended without a result: {}", number, error.message());
      }
    }
  }

  /// Whether its launcher's time was over, and not its own.
  bool was_cut_off(const jobs::Job& job) {
    double began = 0, timeout = 0;
    for (const auto& entry : jobs_.history(job.id)) {
      if (entry.state == JobState::running) began = entry.time;
      if (entry.state == JobState::run_timeout) timeout = entry.time;
    }
    const bool was_its_own =
        job.time_limit_seconds > 0 && timeout - began >= job.time_limit_seconds;
    return timeout > 0 && !was_its_own;
  }

  static std::string read_output(const fs::path& path) {
    try {
      return read_file(path);
    } catch (const Error&) {
      return {};
    }
  }

  ExecutorSetup setup_;
  JobsPlace place_;
  std::shared_ptr<Inbox> inbox_;
  jobs::JobDatabase jobs_;                 // of the working thread
  std::map<std::int64_t, Task> tasks_;     // under way, by trial; of the working thread
  std::map<std::int64_t, JobId> earlier_;  // of an earlier session; of the working thread
  const std::uint32_t session_ = std::random_device()();
  Retry retry_{"the job database"};  // of the working thread
  bool create_in_doubt_ = false;     // nobody knows whether the jobs were created
  std::unique_ptr<store::Watch> watch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StartOrder> orders_;
  std::vector<RunId> kills_;
  bool look_ = false, closing_ = false;
  std::atomic<bool> leaves_jobs_{false};  // when trials are stopped
  std::thread worker_, watcher_;
};

}  // namespace

JobsPlace find_jobs_place(const std::string& otherwise) {
  JobsPlace place;
  auto folder = environment("KOLO_DB");
  if (!folder || folder->empty())
    throw_error(ErrorCode::failed_precondition,
                "the executor 'jobs' needs a job database: make one with `kolo init DIR` and set "
                "KOLO_DB=DIR (or `eval \"$(kolo activate DIR)\"`)");
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

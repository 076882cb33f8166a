#include "hps/search/jobs_executor.h"

#include <algorithm>
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
#include "base/retry.h"
#include "base/words.h"
#include "hps/search/evaluation.h"
#include "jobs/database/body.h"
#include "jobs/database/schema.h"
#include "kolo/jobs.h"
#include "search/space/json_value.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/protocol/value_text.h"
#include "tune/study/controller.h"
#include "tune/study/program_study.h"

namespace kolo::hps {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using jobs::JobId;
using jobs::JobState;
using tune::RunId;
using tune::Value;

/// Between looks, should a notification be lost.
constexpr auto kLook = 2s;

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

class JobsExecutor final : public tune::TrialExecutor {
 public:
  JobsExecutor(std::shared_ptr<tune::Inbox> inbox, JobsSetup setup)
      : inbox_(std::move(inbox)),
        setup_(std::move(setup)),
        jobs_(jobs::JobDatabase::open(setup_.database, setup_.patience)),
        watch_(body_of(jobs_).store->watch(jobs::kEndsChannel)) {
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

  void start(tune::StartOrder order) override {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    changed_.notify_all();
  }
  void answer(RunId /*id*/, tune::Answer /*answer*/) override {}  // jobs report when they end
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

  /// Each search has an application of its own: programs of one name may be different ones.
  [[nodiscard]] std::string application() const {
    const std::string program = setup_.is_users_program
                                    ? fs::path(setup_.command.front()).filename().string()
                                    : "kolo-evaluate";
    return program + "-" + setup_.search;
  }

  void add_application() {
    jobs::Application application;
    application.name = this->application();
    application.executable = setup_.is_users_program ? shell_quoted(setup_.command.front())
                                                     : joined_words(setup_.command);
    application.envscript = setup_.envscript;
    application.description = "evaluations of the search " + setup_.search;
    for (const auto& other : jobs_.applications())
      if (other.name == application.name && other.description != application.description)
        throw_error(ErrorCode::already_exists,
                    "the application '{}' in {} was not made by this search; rename or remove it",
                    other.name, setup_.database.string());
    jobs_.set_application(application);
  }

  /// Jobs of an earlier session of this search.
  void find_earlier() {
    for (const auto& job : jobs_.find({.workflow = setup_.workflow})) {
      const Json data = Json::parse(job.data, nullptr, false);
      if (!data.is_object() || data.value("search", "") != setup_.search) continue;
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
    tune::Message end{tune::Message::Kind::ended, id};
    end.error = why;
    inbox_->put(std::move(end));
  }

  /// Each order leaves the list as soon as its evaluation has a job or has ended: what is left
  /// after an error is what has to be tried again.
  void create(std::vector<tune::StartOrder>& orders) {
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
  void find_created(std::vector<tune::StartOrder>& orders) {
    const auto found = jobs_.find({.workflow = setup_.workflow});
    std::erase_if(orders, [&](const tune::StartOrder& order) {
      const std::string data = data_of(order);
      const auto job = std::find_if(found.begin(), found.end(),
                                    [&](const jobs::Job& one) { return one.data == data; });
      if (job == found.end()) return false;
      wait_for(order, job->id);
      return true;
    });
  }

  void wait_for(const tune::StartOrder& order, JobId job) {
    tasks_.insert_or_assign(order.id.trial, Task{order.id, job, result_of(order)});
  }

  static fs::path result_of(const tune::StartOrder& order) {
    return order.directory / "result.json";
  }

  /// Names the evaluation for later sessions, and this very order for this one.
  [[nodiscard]] std::string data_of(const tune::StartOrder& order) const {
    return Json{{"search", setup_.search},
                {"trial", order.id.trial},
                {"run", order.id.run},
                {"session", session_}}
        .dump();
  }

  jobs::Job job_for(const tune::StartOrder& order) const {
    const fs::path result = result_of(order);
    const fs::path config = order.directory / "params.json";
    write_file_atomically(config, tune::encode(order.config) + "\n");
    std::error_code ignored;
    fs::remove(result, ignored);
    const auto number = order.id.trial;
    const auto& how = setup_.evaluator;
    jobs::Job job;
    job.name = "task" + std::to_string(number);
    job.workflow = setup_.workflow;
    job.application = application();
    job.num_nodes = how.num_nodes_per_eval;
    job.ranks_per_node = how.num_ranks_per_node;
    job.threads_per_rank = how.num_threads_per_rank;
    job.gpus_per_rank = how.num_gpus_per_task / how.num_ranks_per_node;
    job.node_packing_count = how.num_evals_per_node;
    job.auto_timeout_retry = false;
    if (how.timeout) {
      job.time_limit_seconds = how.timeout->count();
      job.wall_time_minutes = std::max(1, static_cast<int>(how.timeout->count() / 60));
    }
    std::vector<std::string> words;
    if (setup_.is_users_program) {
      words =
          tune::fill_in(setup_.command, order.config, order.trial_id, order.directory.string(), "");
      words.erase(words.begin());
    } else {
      words = {"--config",      config.string(), "--result",
               result.string(), "--id",          std::to_string(number)};
    }
    job.args = joined_words(words);
    job.data = data_of(order);
    return job;
  }

  void end(std::vector<RunId>& kills) {
    std::vector<JobId> ids;
    for (const RunId id : kills)
      if (const auto found = tasks_.find(id.trial); found != tasks_.end() && found->second.id == id)
        ids.push_back(found->second.job);
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
      tune::Message end{tune::Message::Kind::ended, it->second.id};
      if (job == found.end())
        end.error = fmt::format("job {} was removed from the database",
                                static_cast<std::int64_t>(it->second.job));
      else
        read_end(job->second, it->second, end);
      inbox_->put(std::move(end));
      it = tasks_.erase(it);
    }
  }

  void read_end(const jobs::Job& job, const Task& task, tune::Message& end) {
    const auto number = static_cast<std::int64_t>(job.id);
    const fs::path output = jobs_.folder_of(job) / (job.name + ".out");
    if (job.state == JobState::user_killed) {
      end.error = fmt::format("F_killed: job {} was killed", number);
    } else if (job.state != JobState::job_finished) {
      bool timeout = false;
      for (const auto& entry : jobs_.history(job.id))
        timeout = timeout || entry.state == JobState::run_timeout;
      end.error =
          timeout ? std::string(tune::kTimeoutFailure)
                  : fmt::format("F_job: job {} failed; {} has its output", number, output.string());
    } else if (setup_.is_users_program) {
      end.last_words = tune::parse_last_words(read_output(output), setup_.metric);
    } else {
      try {
        end.last_words = tune::decode(read_file(task.result), task.result.string());
      } catch (const Error& error) {
        end.error =
            fmt::format("F_result: job {} ended without a result: {}", number, error.message());
      }
    }
  }

  static std::string read_output(const fs::path& path) {
    try {
      return read_file(path);
    } catch (const Error&) {
      return {};
    }
  }

  std::shared_ptr<tune::Inbox> inbox_;
  JobsSetup setup_;
  jobs::JobDatabase jobs_;                 // of the working thread
  std::map<std::int64_t, Task> tasks_;     // under way, by trial; of the working thread
  std::map<std::int64_t, JobId> earlier_;  // of an earlier session; of the working thread
  const std::uint32_t session_ = std::random_device()();
  Retry retry_{"the job database"};  // of the working thread
  bool create_in_doubt_ = false;     // nobody knows whether the jobs were created
  std::unique_ptr<store::Watch> watch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<tune::StartOrder> orders_;
  std::vector<RunId> kills_;
  bool look_ = false, closing_ = false;
  std::thread worker_, watcher_;
};

}  // namespace

JobsPlace find_jobs_place(const std::string& otherwise) {
  JobsPlace place;
  auto folder = environment("KOLO_DB");
  if (!folder || folder->empty())
    throw_error(ErrorCode::failed_precondition,
                "the evaluator 'jobs' needs a job database: make one with `kolo init DIR` and set "
                "KOLO_DB=DIR (or `eval $(kolo activate DIR)`)");
  place.database = *folder;
  place.workflow = otherwise;
  if (const auto own = environment("KOLO_JOB_ID")) {
    std::int64_t number = 0;
    std::from_chars(own->data(), own->data() + own->size(), number);
    auto jobs = jobs::JobDatabase::open(place.database);
    const auto job = jobs.job(JobId{number});
    place.workflow = job.workflow;
    place.search_nodes = job.num_nodes;
    place.envscript = jobs.application(job.application).envscript;
  }
  return place;
}

std::unique_ptr<tune::TrialExecutor> make_jobs_executor(std::shared_ptr<tune::Inbox> inbox,
                                                        JobsSetup setup) {
  return std::make_unique<JobsExecutor>(std::move(inbox), std::move(setup));
}

}  // namespace kolo::hps

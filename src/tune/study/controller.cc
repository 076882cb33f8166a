#include "tune/study/controller.h"

#include <algorithm>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A controller is heard of at least this often.
constexpr auto kHeartbeat = 1s;
/// Between tries to reach a database that is gone.
constexpr auto kRetry = 500ms;
/// Files and callbacks that may wait for a quieter moment.
constexpr std::size_t kBacklog = 256;
/// How long runs that cannot be killed are waited for beyond the grace time.
constexpr auto kLastWait = 5s;

bool may_pass(const Error& error) {
  return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io ||
         error.code() == ErrorCode::timeout;
}

}  // namespace

/// Wakes the controller when somebody asks something of it.
struct Controller::Watcher {
  Watcher(std::unique_ptr<store::Watch> news, std::shared_ptr<Inbox> to)
      : watch(std::move(news)), thread([this, inbox = std::move(to)] {
          while (!closing)
            if (watch->wait(Deadline::after(10s))) inbox->put({});
        }) {}
  ~Watcher() {
    closing = true;
    watch->cancel();
    thread.join();
  }
  std::unique_ptr<store::Watch> watch;
  std::atomic<bool> closing{false};
  std::thread thread;
};

Controller::Controller(ControllerSetup setup, store::StudyStore& store, store::StudyRecord study)
    : setup_(std::move(setup)),
      options_(setup_.options),
      store_(store),
      study_(std::move(study)),
      steering_(options_),
      policy_files_(study_.directory),
      pool_(options_.total_resources.value_or(machine_resources())) {
  if (std::string& restore = setup_.options.restore; !restore.empty()) {
    if (!std::filesystem::exists(restore))
      throw_error(ErrorCode::not_found, "there is no checkpoint {} to begin from", restore);
    restore = std::filesystem::absolute(restore).string();
  }
  store_.claim(study_.id, now());
  // Read after the claim: an earlier controller may have written until then.
  study_ = store_.at(study_.name);
  seq_ = study_.seq;
  logged_ = study_.logged;
  elapsed_before_ = study_.elapsed;
  // First, since it waits until nothing of an earlier controller's trials is left.
  executor_ = setup_.make_executor(inbox_);
  resume();
  watcher_ = std::make_unique<Watcher>(store_.watch_requests(), inbox_);
}

Controller::~Controller() {
  watcher_.reset();
  executor_.reset();
  store_.release(study_.id);
}

double Controller::now() const {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double Controller::elapsed() const {
  return elapsed_before_ + std::chrono::duration<double>(Clock::now() - session_began_).count();
}

void Controller::say(const std::string& text) {
  log::warning("study {}: {}", study_.name, text);
  for (auto& observer : setup_.observers) observer->on_message(text);
}

void Controller::event(const std::string& kind, std::optional<std::int64_t> trial,
                       const std::string& detail) {
  batch_.events.push_back({next_seq(), now(), trial, kind, detail});
}

void Controller::run() {
  for (auto& callback : options_.callbacks) callback->on_study_begin(study_.name);
  try {
    while (leaving_ == Leaving::no) step();
    wait_for_the_last();
  } catch (...) {
    // The database is gone for good, or a callback failed: trials must not be left behind.
    leaving_ = Leaving::failed;
    for (auto& [number, trial] : live_) {
      if (!trial->active) continue;
      executor_->answer(trial->run_id(), {Reply::stop});
      executor_->kill(trial->run_id());
    }
    throw;
  }
  for (auto& callback : options_.callbacks) callback->on_study_end();
  if (!first_error_.empty() && options_.fail_fast)
    throw_error(ErrorCode::internal, "study {}: a trial failed: {}", study_.name, first_error_);
}

void Controller::step() {
  auto messages = inbox_->take(next_look());
  for (auto& message : messages) handle(message);
  if (look_for_requests_) look_at_requests();
  check_time();
  if (leaving_ == Leaving::no) fill();
  check_end();
  commit();
  act();
  for (auto& observer : setup_.observers)
    observer->on_step([this](std::size_t rows) { return view(rows); });
}

Deadline Controller::next_look() const {
  if (!afterwards_.empty()) return Deadline::after(0ms);
  // The first step has trials to start.
  if (trials_.empty() || (running_ == 0 && leaving_ == Leaving::no)) return Deadline::after(0ms);
  auto when = last_write_ + kHeartbeat;
  for (const auto& observer : setup_.observers)
    when = std::min(when, Clock::now() + observer->patience());
  for (const auto& [number, trial] : live_) {
    if (trial->kill_at) when = std::min(when, *trial->kill_at);
    if (const auto limit = time_limit_of(*trial)) when = std::min(when, *limit);
  }
  return Deadline::at(when);
}

/// When a run that works, and that nobody ends yet, has had all its time.
std::optional<Clock::time_point> Controller::time_limit_of(const TrialState& trial) const {
  if (!options_.trial_time_limit || !trial.active || trial.held || trial.ending != Ending::none)
    return std::nullopt;
  return trial.began + std::chrono::duration_cast<Clock::duration>(*options_.trial_time_limit);
}

void Controller::handle(Message& message) {
  if (message.kind == Message::Kind::poke) {
    look_for_requests_ = true;
    return;
  }
  auto& trial = this->trial(message.id.trial);
  if (!trial.active || trial.run_id() != message.id) return;  // an earlier run's
  switch (message.kind) {
    case Message::Kind::report: on_report(trial, message); break;
    case Message::Kind::checkpoint:
      on_checkpoint(trial, message.checkpoint, trial.run_iteration);
      answers_.push_back({message.id, {}});
      break;
    case Message::Kind::ended: on_end(trial, message); break;
    case Message::Kind::poke: break;
  }
}

void Controller::look_at_requests() {
  look_for_requests_ = false;
  std::vector<store::RequestRecord> requests;
  try {
    requests = store_.requests(study_.id);
  } catch (const Error& error) {
    if (!may_pass(error)) throw;
    look_for_requests_ = true;  // the commit will meet the same and wait
    return;
  }
  for (const auto& request : requests) {
    batch_.done_requests.push_back(request.number);
    if (request.kind != "stop") continue;
    event("request", request.trial, "stop");
    if (!request.trial) {
      leave(Leaving::interrupted, "somebody stopped the study");
    } else if (*request.trial < static_cast<std::int64_t>(trials_.size())) {
      auto& trial = this->trial(*request.trial);
      if (!trial.ended()) want_end(trial, Ending::done, "somebody stopped it");
    }
  }
}

void Controller::check_time() {
  if (setup_.interrupted != nullptr && *setup_.interrupted && leaving_ == Leaving::no)
    leave(Leaving::interrupted, "interrupted");
  if (leaving_ == Leaving::no && steering_.study_over(std::chrono::duration<double>(elapsed()))) {
    event("over", std::nullopt, "a stopping rule of the study");
    leave(Leaving::finished, "the study is over");
  }
  for (auto& [number, trial] : live_)
    if (const auto limit = time_limit_of(*trial); limit && Clock::now() >= *limit)
      want_end(*trial, Ending::failed, std::string(kTimeoutFailure));
  std::vector<TrialState*> overdue;
  for (auto& [number, trial] : live_)
    if (trial->kill_at && Clock::now() >= *trial->kill_at) overdue.push_back(trial);
  for (auto* trial : overdue) {
    trial->kill_at.reset();
    const RunId id = trial->run_id();
    if (executor_->can_kill())
      say(fmt::format("trial {} did not end in time and is killed", trial->id));
    executor_->kill(id);
    if (executor_->can_kill() || trial->ending != Ending::failed) continue;
    say(fmt::format("trial {} had its time and does not end; its thread is left behind",
                    trial->id));
    Message gone{Message::Kind::ended, id};
    on_end(*trial, gone);
  }
}

void Controller::leave(Leaving how, const std::string& why) {
  if (leaving_ != Leaving::no) return;
  leaving_ = how;
  leaving_why_ = why;
  const Ending ending = how == Leaving::finished ? Ending::done : Ending::dropped;
  std::vector<TrialState*> all;
  for (auto& [number, trial] : live_) all.push_back(trial);
  for (auto* trial : all)
    if (trial->active || how == Leaving::finished) want_end(*trial, ending, why);
}

void Controller::check_end() {
  if (leaving_ != Leaving::no || running_ > 0 || !live_.empty() || !starts_.empty()) return;
  if (steering_.wants_more() && trials_.empty()) {
    say("the search gives no trial to begin with");
  } else if (steering_.wants_more() && !stalled_) {
    return;  // the next step asks again
  }
  leaving_ = Leaving::finished;
}

void Controller::wait_for_the_last() {
  const auto limit = std::chrono::duration_cast<Clock::duration>(options_.grace) + kLastWait;
  const Deadline deadline = Deadline::after(limit);
  const auto any_active = [this] {
    return std::any_of(live_.begin(), live_.end(),
                       [](const auto& entry) { return entry.second->active; });
  };
  while (any_active() && !deadline.passed()) {
    auto messages =
        inbox_->take(Deadline::after(std::min<Clock::duration>(deadline.left(), 100ms)));
    for (auto& message : messages) handle(message);
    check_time();
    commit();
    act();
  }
  for (auto& [number, trial] : live_)
    if (trial->active)
      say(fmt::format("trial {} does not end; its thread is left behind", trial->id));
  work_off(0);
  batch_.status = leaving_ == Leaving::finished ? store::StudyStatus::finished
                  : leaving_ == Leaving::failed ? store::StudyStatus::failed
                                                : store::StudyStatus::stopped;
  commit();
  act();
  work_off(0);
  for (auto& observer : setup_.observers)
    observer->on_end([this](std::size_t rows) {
      auto last = view(rows);
      last.over = true;
      return last;
    });
}

void Controller::patiently(const std::function<void()>& write) {
  const auto give_up =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.storage_patience);
  for (bool said = false;; said = true) {
    try {
      write();
      if (said) say("it can be written again; the study goes on");
      return;
    } catch (const Error& error) {
      const bool stop = setup_.interrupted != nullptr && *setup_.interrupted;
      if (!may_pass(error) || stop || Clock::now() > give_up) throw;
      if (!said) say(fmt::format("the study waits: {}", error.message()));
      std::this_thread::sleep_for(kRetry);
    }
  }
}

void Controller::commit() {
  const bool quiet = batch_.empty() && dirty_.empty();
  if (quiet && Clock::now() - last_write_ < kHeartbeat) return;
  batch_.from_seq = study_.seq;
  batch_.to_seq = seq_;
  batch_.elapsed = elapsed();
  batch_.now = now();
  batch_.logged = logged_;
  for (auto& [number, trial] : dirty_) batch_.trials.push_back(trial->record);
  dirty_.clear();
  patiently([this] { store_.write(study_.id, batch_); });
  study_.seq = seq_;
  batch_ = {};
  last_write_ = Clock::now();
}

void Controller::act() {
  // Answers first: trials work while the rest is done.
  for (const auto& [id, answer] : answers_) executor_->answer(id, answer);
  answers_.clear();
  for (auto& order : starts_) {
    if (setup_.makes_directories)
      patiently([&order] {
        std::error_code error;
        std::filesystem::create_directories(order.directory, error);
        if (error)
          throw_error(ErrorCode::io, "cannot make {}: {}", order.directory.string(),
                      error.message());
      });
    executor_->start(std::move(order));
  }
  starts_.clear();
  for (const RunId id : stops_) executor_->stop(id);
  stops_.clear();
  for (const auto& path : removals_) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  removals_.clear();
  work_off(kBacklog);
}

/// Files and callbacks wait while trials do: until nobody has a message, or `leave` are left.
void Controller::work_off(std::size_t leave) {
  while (!afterwards_.empty() && (afterwards_.size() > leave || inbox_->empty())) {
    const auto item = std::move(afterwards_.front());
    afterwards_.pop_front();
    item();
  }
  if (!afterwards_.empty()) return;
  for (auto* trial : unflushed_)
    if (trial->log) log_safely(*trial, [](TrialLog& log) { log.flush(); });
  unflushed_.clear();
  if (logs_complete_) logged_ = study_.seq;
}

void Controller::log_safely(TrialState& trial, const std::function<void(TrialLog&)>& write) {
  if (options_.loggers.empty()) return;
  try {
    if (!trial.log) {
      std::vector<std::string> metrics;
      for (const auto& objective : steering_.objectives()) metrics.push_back(objective.metric);
      trial.log = std::make_unique<TrialLog>(
          LoggedTrial{trial.record.directory,
                      trial.config.is_nothing() ? decode(trial.record.config, "a configuration")
                                                : trial.config,
                      std::move(metrics)},
          options_.loggers, /*anew=*/false);
    }
    write(*trial.log);
  } catch (const std::exception& error) {
    note_unwritten(error);
  }
}

void Controller::note_unwritten(const std::exception& error) {
  // The database has it all; the next resume writes the files anew.
  if (std::exchange(logs_complete_, false))
    say(fmt::format("files of trials cannot be written: {}; the database is complete",
                    error.what()));
}

}  // namespace kolo::tune

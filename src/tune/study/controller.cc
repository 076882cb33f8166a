// A step is described in controller.h. The end of a study is a state (leaving_): leave() asks all
// runs to end, and wait_for_the_last() takes their last messages for as long as the grace time.
// While the storage is away a write is repeated (patiently), and nothing is acted on before it has
// succeeded. A trial that SIGTERM has ended is judged a moment later, when it is known whether the
// study itself was told to end, too.
#include "tune/study/controller.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/errors.h"
#include "base/json.h"
#include "base/retry.h"
#include "tune/study/replay.h"
#include "tune/study/study_requests.h"
#include "tune/study/study_spec.h"
#include "tune/study/study_view.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

/// So many calls of loggers and callbacks may wait while trials wait for answers.
constexpr std::size_t kBacklog = 256;
/// How long runs that cannot be killed are waited for, beyond the grace time.
constexpr auto kLastWait = 5s;
/// Who ends an allocation or a terminal tells all processes at once, and a trial may be faster than
/// this process: so long after a trial ended by SIGTERM this one may be told, too.
constexpr auto kMoment = 250ms;

}  // namespace

/// Wakes the controller when a request for a study has come.
class Controller::RequestWatcher {
 public:
  RequestWatcher(std::unique_ptr<store::Watch> watch, std::shared_ptr<Inbox> inbox)
      : watch_(std::move(watch)), thread_([this, inbox = std::move(inbox)] {
          while (!closing_) {
            try {
              if (watch_->wait(Deadline::after(10s))) inbox->put({});
            } catch (const std::exception&) {
              std::this_thread::sleep_for(500ms);  // the study itself meets the same error
            }
          }
        }) {}
  ~RequestWatcher() {
    closing_ = true;
    watch_->cancel();
    thread_.join();
  }
  RequestWatcher(const RequestWatcher&) = delete;
  RequestWatcher& operator=(const RequestWatcher&) = delete;

 private:
  std::unique_ptr<store::Watch> watch_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

Controller::Controller(StudyState& state, std::shared_ptr<Inbox> inbox, TrialExecutor& executor,
                       const std::atomic<bool>* interrupted)
    : state_(state), inbox_(std::move(inbox)), executor_(executor), interrupted_(interrupted) {
  reports_.add_recorded(Replay(state_, ends_).run());
  watcher_ = std::make_unique<RequestWatcher>(state_.journal.store().watch_requests(), inbox_);
}

Controller::~Controller() = default;

void Controller::run() {
  state_.announce.study_begins();
  try {
    while (leaving_ == Leaving::no) step();
    wait_for_the_last();
  } catch (...) {
    // The database stays away, or a callback failed: no run may be left behind.
    leaving_ = Leaving::failed;
    kill_all();
    throw;
  }
  state_.announce.study_ends();
  if (!state_.first_failure.empty() && state_.options.fail_fast)
    throw_error(ErrorCode::trial_failed, "study {}: a trial failed: {}",
                state_.journal.study().name, state_.first_failure);
}

void Controller::kill_all() {
  for (const auto& [number, trial] : state_.trials.live()) {
    if (!has_run(trial->phase)) continue;
    executor_.answer(trial->run_id(), {Reply::stop});
    executor_.kill(trial->run_id());
  }
}

void Controller::step() {
  auto messages = inbox_->take(next_look());
  for (auto& message : messages) handle(message);
  if (look_for_requests_) look_at_requests();
  check_time();
  if (leaving_ == Leaving::no) {
    starts_.fill();
    sharing_.settle();
  }
  check_end();
  commit();
  act(kBacklog);
  state_.announce.step([this](std::size_t rows) { return view(rows); });
}

Deadline Controller::next_look() const {
  const auto& trials = state_.trials;
  if (state_.announce.waiting()) return Deadline::at(state_.clock.now());
  // The first step has trials to start.
  if (trials.size() == 0 || (trials.occupied() == 0 && leaving_ == Leaving::no))
    return Deadline::at(state_.clock.now());
  auto when =
      std::min(state_.journal.next_heartbeat(), state_.clock.now() + state_.announce.patience());
  if (!terminated_.empty()) when = std::min(when, terminated_.front().came + kMoment);
  for (const auto& [number, trial] : trials.live()) {
    if (trial->kill_at) when = std::min(when, *trial->kill_at);
    if (const auto limit = time_limit_of(*trial)) when = std::min(when, *limit);
  }
  return Deadline::at(when);
}

std::optional<Clock::Time> Controller::time_limit_of(const StudyTrial& trial) const {
  const auto& limit = state_.options.trial_time_limit;
  if (!limit || trial.phase != TrialPhase::running || executor_.limits_time()) return std::nullopt;
  return trial.began + clock_duration(limit->count());
}

void Controller::handle(Message& message) {
  if (message.kind == Message::Kind::poke) {
    look_for_requests_ = true;
    return;
  }
  if (message.kind == Message::Kind::room) {
    state_.pool.extend(resources_for(message.trials_at_once, state_.per_trial));
    return;
  }
  StudyTrial* found = state_.trials.find(message.id.trial);
  // A run that is over was restarted or given up: what it still says does not count.
  if (found == nullptr || !has_run(found->phase) || found->run_id() != message.id) return;
  StudyTrial& trial = *found;
  switch (message.kind) {
    case Message::Kind::report: reports_.on_report(trial, message); break;
    case Message::Kind::checkpoint: reports_.on_checkpoint(trial, message.checkpoint); break;
    case Message::Kind::ended:
      executor_.forget(message.id);
      if (message.was_cut_off && trial.fate == Fate::open) trial.fate = Fate::dropped;
      if (message.was_terminated && trial.fate == Fate::open && leaving_ == Leaving::no)
        terminated_.push_back(std::move(message));
      else
        reports_.on_end(trial, message);
      break;
    case Message::Kind::shrunk: sharing_.shrunk(trial); break;
    case Message::Kind::poke:
    case Message::Kind::room: break;
  }
}

void Controller::judge_terminated() {
  while (!terminated_.empty()) {
    Message& message = terminated_.front();
    if (leaving_ == Leaving::no && state_.clock.now() < message.came + kMoment) return;
    reports_.on_end(state_.trials.at(message.id.trial), message);
    terminated_.erase(terminated_.begin());
  }
}

void Controller::look_at_requests() {
  look_for_requests_ = false;
  std::vector<store::RequestRecord> requests;
  try {
    requests = state_.journal.store().requests(state_.journal.study().id);
  } catch (const Error& error) {
    if (!Retry::may_pass(error)) throw;
    look_for_requests_ = true;  // the commit of this step meets the same error and waits
    return;
  }
  for (const auto& request : requests) {
    state_.journal.request_done(request.number);
    if (const auto count = added_by_request(request.kind)) add_trials(*count);
    if (request.kind != "stop") continue;
    state_.journal.event("request", request.trial, "stop");
    if (!request.trial) {
      leave(Leaving::interrupted, "somebody stopped the study");
    } else if (auto* trial = state_.trials.find(*request.trial); trial && !trial->ended()) {
      ends_.want_end(*trial, Fate::done, "somebody stopped it");
    }
  }
}

void Controller::add_trials(std::int64_t count) {
  StudySpec spec = StudySpec::from_json(state_.journal.study().spec);
  state_.options.num_samples += count;
  state_.steering.extend(state_.options);
  // `kolo resume` goes on with as many.
  spec.num_samples = state_.options.num_samples;
  if (auto command = try_parse_json(spec.command); command && command->is_object()) {
    (*command)["num_samples"] = spec.num_samples;
    spec.command = json_text(*command);
  }
  state_.journal.set_spec(spec.to_json());
  state_.journal.event("request", std::nullopt, fmt::format("{} more trials", count));
  state_.announce.message(
      fmt::format("somebody added {} trials; num_samples is now {}", count, spec.num_samples));
}

void Controller::check_time() {
  if (is_interrupted() && leaving_ == Leaving::no) {
    executor_.study_is_interrupted();
    leave(Leaving::interrupted, "the study was interrupted");
  }
  judge_terminated();
  if (leaving_ == Leaving::no &&
      state_.steering.study_over(std::chrono::duration<double>(state_.journal.elapsed()))) {
    state_.journal.event("over", std::nullopt, "a stopping rule of the study");
    leave(Leaving::finished, "the study is over");
  }
  for (auto* trial : state_.trials.live_list()) {
    if (const auto limit = time_limit_of(*trial); limit && state_.clock.now() >= *limit)
      ends_.want_end(*trial, Fate::failed,
                     fmt::format("{}: it ran longer than its limit of {:.5g} s", kTimeoutFailure,
                                 state_.options.trial_time_limit->count()));
    if (trial->kill_at && state_.clock.now() >= *trial->kill_at) end_overdue(*trial);
  }
  if (state_.options.fail_fast && !state_.first_failure.empty())
    leave(Leaving::failed, "a trial failed");
}

/// The grace time of a run is over.
void Controller::end_overdue(StudyTrial& trial) {
  trial.kill_at.reset();
  const RunId id = trial.run_id();
  if (executor_.can_kill())
    state_.announce.message(
        fmt::format("trial {} did not end within its grace time and is killed", trial.id));
  executor_.kill(id);
  if (executor_.can_kill() || trial.fate != Fate::failed) return;
  // Nothing can end it, so it is left behind, and its place goes to others.
  executor_.forget(id);
  Message gone{Message::Kind::ended, id};
  reports_.on_end(trial, gone);
}

void Controller::leave(Leaving how, const std::string& reason) {
  if (leaving_ != Leaving::no) return;
  leaving_ = how;
  const Fate fate = how == Leaving::finished ? Fate::done : Fate::dropped;
  for (auto* trial : state_.trials.live_list())
    if (!trial->ended()) ends_.want_end(*trial, fate, reason);
}

void Controller::check_end() {
  const auto& trials = state_.trials;
  if (leaving_ != Leaving::no || trials.occupied() > 0 || !trials.live().empty() ||
      state_.actions.starting())
    return;
  if (state_.steering.wants_more() && trials.size() == 0) {
    state_.announce.message("the search has no trial to offer, so the study ends without one");
  } else if (state_.steering.wants_more() && !starts_.exhausted()) {
    return;  // the next step asks again
  }
  leaving_ = Leaving::finished;
}

void Controller::wait_for_the_last() {
  const auto limit = clock_duration(state_.options.grace.count()) + kLastWait;
  const Clock::Time give_up = state_.clock.now() + limit;
  while (state_.trials.any_run() && state_.clock.now() < give_up) {
    auto messages = inbox_->take(Deadline::at(std::min(give_up, state_.clock.now() + 100ms)));
    for (auto& message : messages) handle(message);
    check_time();
    commit();
    act(kBacklog);
  }
  for (const auto& [number, trial] : state_.trials.live())
    if (has_run(trial->phase))
      state_.announce.message(fmt::format(
          "trial {} does not end, and its thread cannot be killed; it is left behind", trial->id));
  act(0);
  state_.journal.set_study_status(leaving_ == Leaving::finished ? store::StudyStatus::finished
                                  : leaving_ == Leaving::failed ? store::StudyStatus::failed
                                                                : store::StudyStatus::stopped);
  commit();
  act(0);
  state_.announce.last_step([this](std::size_t rows) {
    auto last = view(rows);
    last.over = true;
    return last;
  });
}

void Controller::patiently(const std::function<void()>& write) {
  Retry retry("the storage of the study", state_.clock,
              clock_duration(state_.options.storage_patience.count()),
              [this](const std::string& text) { state_.announce.message(text); });
  while (!retry.attempt(write)) {
    if (is_interrupted()) return write();  // for the last time
    inbox_->pause(Deadline::at(retry.next()));
  }
}

void Controller::commit() {
  state_.journal.commit(state_.trials,
                        [this](const std::function<void()>& write) { patiently(write); });
}

void Controller::act(std::size_t backlog) {
  const auto flush = [this] { patiently([this] { state_.journal.flush(); }); };
  state_.actions.perform(executor_, flush,
                         [this](const StartOrder& order) { return prepare(order); });
  const auto trials_wait = [this] { return !inbox_->empty(); };
  if (state_.announce.work_off(backlog, trials_wait)) state_.journal.files_complete();
}

/// A disk that is full or away is waited for. What an earlier run of the trial has put in place of
/// its directory concerns this trial alone.
bool Controller::prepare(const StartOrder& order) {
  if (!state_.makes_directories) return true;
  patiently([&directory = order.directory] {
    std::error_code error, none;
    fs::create_directories(directory, error);
    const auto type = fs::symlink_status(directory, none).type();
    if (error && (type == fs::file_type::not_found || type == fs::file_type::none))
      throw_error(ErrorCode::io, "cannot make {}: {}", directory.string(), error.message());
  });
  try {
    require_trial_directory(order.directory);
  } catch (const Error& error) {
    Message end{Message::Kind::ended, order.id};
    end.error = error.message();
    inbox_->put(std::move(end));
    return false;
  }
  return true;
}

StudyView Controller::view(std::size_t rows) const {
  return view_of(state_, reports_.recorded(), rows);
}

}  // namespace kolo::tune

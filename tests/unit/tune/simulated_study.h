// Studies in simulated time: whole studies, with their journal and their files, whose trials are
// events in a queue. Hours pass in milliseconds, and slow saves, late reports and few places happen
// in the same order in every run.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "base/files.h"
#include "support/given_clock.h"
#include "tune/study/study.h"
#include "tune/trial/checkpoints.h"

namespace kolo::test {

/// What happens, and when.
class Events {
 public:
  explicit Events(GivenClock& clock) : clock_(clock) {}
  void after(double seconds, std::function<void()> event) {
    queue_.emplace(clock_.now() + clock_duration(seconds), std::move(event));
  }
  /// Until the deadline, or until something has happened. What is due at one time happens in one
  /// step.
  void advance(Deadline deadline) {
    if (queue_.empty() && ++idle_ > kMostIdle)
      throw std::logic_error("the study waits, and nothing is left that could happen");
    if (queue_.empty() || queue_.begin()->first > deadline.when()) {
      advance_to(deadline.when());
      return;
    }
    idle_ = 0;
    advance_to(queue_.begin()->first);
    while (!queue_.empty() && queue_.begin()->first <= clock_.now()) {
      auto event = std::move(queue_.extract(queue_.begin()).mapped());
      event();
    }
  }

 private:
  void advance_to(Clock::Time time) {
    if (time > clock_.now()) clock_.advance(time - clock_.now());
  }

  static constexpr int kMostIdle = 100;
  GivenClock& clock_;
  std::multimap<Clock::Time, std::function<void()>> queue_;
  int idle_ = 0;
};

/// How trials behave.
struct Behaviour {
  enum class Saves { on_request, with_reports, never };

  /// The metrics of the next step. `state` is what a checkpoint keeps; it begins at zero.
  std::function<tune::Value(const tune::Value& config, double& state, std::int64_t iteration)> step;
  Saves saves = Saves::on_request;
  /// Seconds, by the number of the trial.
  std::function<double(std::int64_t trial)> step_seconds = [](auto) { return 1.0; };
  std::function<double(std::int64_t trial)> save_seconds = [](auto) { return 0.0; };
  /// Between the end of a step and the arrival of its report.
  std::function<double(std::int64_t trial)> delay_seconds = [](auto) { return 0.0; };
  std::int64_t last_iteration = 1000;  ///< then the run ends by itself
  /// Asked at each step: why the run fails there, "" if it does not.
  std::function<std::string(tune::RunId id)> failure{};
  /// The same for right after its report, which has not been answered yet.
  std::function<std::string(tune::RunId id)> failure_after{};
  /// Of trials whose ranks change: how much faster so many are than one, and how long a change
  /// takes.
  std::function<double(int ranks)> speed = [](auto) { return 1.0; };
  double change_seconds = 0.05;
};

class SimulatedExecutor final : public tune::TrialExecutor {
 public:
  SimulatedExecutor(Behaviour behaviour, GivenClock& clock, Events& events,
                    std::shared_ptr<tune::Inbox> inbox)
      : behaviour_(std::move(behaviour)), clock_(clock), events_(events), inbox_(std::move(inbox)) {
    inbox_->simulate = [this](Deadline deadline) { events_.advance(deadline); };
  }

  void start(tune::StartOrder order) override {
    const auto id = order.id;
    Run& run = runs_[id.trial];
    run = {};
    run.iteration = order.iteration;
    run.ranks = std::max(1, order.grant.ranks);
    if (order.checkpoint) run.state = std::stod(read_file(*order.checkpoint / "state"));
    run.over = run.iteration >= behaviour_.last_iteration;
    run.order = std::move(order);
    go_on(id);
  }

  void answer(tune::RunId id, tune::Answer answer) override {
    Run* run = find(id);
    if (run == nullptr) return;
    if (run->saving) {
      run->saving = false;
      go_on(id);
      return;
    }
    run->pausing = answer.reply == tune::Reply::pause;
    run->over = answer.reply != tune::Reply::proceed || run->iteration >= behaviour_.last_iteration;
    const bool save =
        (answer.save || run->pausing) && behaviour_.saves == Behaviour::Saves::on_request;
    if (!save) {
      go_on(id);
      return;
    }
    run->saving = true;
    events_.after(behaviour_.save_seconds(id.trial), [this, id] {
      if (Run* here = find(id)) {
        auto message = message_of(tune::Message::Kind::checkpoint, id);
        message.checkpoint = save_state(*here, here->iteration);
        inbox_->put(std::move(message));
      }
    });
  }

  void stop(tune::RunId id) override {
    if (Run* run = find(id)) run->over = true;
  }
  void resize(tune::RunId id, int ranks) override {
    Run* run = find(id);
    if (run == nullptr || ranks == run->ranks) return;
    most_ranks_ = std::max(most_ranks_, ranks);
    const bool fewer = ranks < run->ranks;
    if (run->is_stepping) {  // what is left of the step goes on at another speed
      run->work_left -= seconds_since(run->since) * behaviour_.speed(run->ranks);
      run->ranks = ranks;
      work(id, behaviour_.change_seconds);
    }
    run->ranks = ranks;
    if (fewer)
      events_.after(behaviour_.change_seconds, [this, id] {
        if (find(id) != nullptr) inbox_->put(message_of(tune::Message::Kind::shrunk, id));
      });
  }
  void kill(tune::RunId id) override {
    if (find(id) != nullptr) {
      ++kills_;
      end(id);
    }
  }
  void forget(tune::RunId id) override {
    if (find(id) != nullptr) runs_.erase(id.trial);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return true; }

  [[nodiscard]] int kills() const noexcept { return kills_; }
  [[nodiscard]] std::size_t running() const noexcept { return runs_.size(); }
  [[nodiscard]] int most_ranks() const noexcept { return most_ranks_; }

 private:
  struct Run {
    tune::StartOrder order;
    std::int64_t iteration = 0;
    double state = 0;
    bool saving = false, pausing = false, over = false;
    int ranks = 1;
    // The step that it works on: what is left of it, in seconds of one rank.
    bool is_stepping = false;
    double work_left = 0;
    Clock::Time since{};
    std::int64_t turn = 0;  // the event that ends the step is the one of this turn
  };

  Run* find(tune::RunId id) {
    const auto found = runs_.find(id.trial);
    return found == runs_.end() || found->second.order.id != id ? nullptr : &found->second;
  }
  /// Of the step; nothing while a change is made.
  [[nodiscard]] double seconds_since(Clock::Time time) const {
    return std::max(0.0, std::chrono::duration<double>(clock_.now() - time).count());
  }
  [[nodiscard]] tune::Message message_of(tune::Message::Kind kind, tune::RunId id) const {
    tune::Message message{kind, id};
    message.came = clock_.now();
    return message;
  }
  static std::filesystem::path save_state(const Run& run, std::int64_t iteration) {
    return tune::make_checkpoint(
        run.order.directory, iteration, [&](const std::filesystem::path& directory) {
          write_file_atomically(directory / "state", fmt::format("{}", run.state));
        });
  }

  void begin_step(tune::RunId id) {
    const bool saves = behaviour_.saves == Behaviour::Saves::with_reports;
    Run& begun = *find(id);
    begun.is_stepping = true;
    begun.work_left = behaviour_.step_seconds(id.trial);
    work(id, (saves ? behaviour_.save_seconds(id.trial) : 0) + behaviour_.delay_seconds(id.trial));
  }
  /// Ends the step when its work is done, and so much later.
  void work(tune::RunId id, double later) {
    Run& working = *find(id);
    const std::int64_t turn = ++working.turn;
    const bool saves = behaviour_.saves == Behaviour::Saves::with_reports;
    working.since = clock_.now() + clock_duration(later);
    const double seconds = later + working.work_left / behaviour_.speed(working.ranks);
    events_.after(seconds, [this, id, saves, turn] {
      Run* run = find(id);
      if (run == nullptr || run->turn != turn) return;
      run->is_stepping = false;
      if (fails(id, behaviour_.failure)) return;
      auto message = message_of(tune::Message::Kind::report, id);
      message.metrics = behaviour_.step(run->order.config, run->state, run->iteration + 1);
      message.saves_on_request = behaviour_.saves == Behaviour::Saves::on_request;
      if (saves) message.checkpoint = save_state(*run, run->iteration + 1);
      ++run->iteration;
      inbox_->put(std::move(message));
      fails(id, behaviour_.failure_after);
    });
  }
  bool fails(tune::RunId id, const std::function<std::string(tune::RunId id)>& failure) {
    std::string error = failure ? failure(id) : "";
    if (error.empty()) return false;
    auto failed = message_of(tune::Message::Kind::ended, id);
    failed.error = std::move(error);
    inbox_->put(std::move(failed));
    return true;
  }
  void go_on(tune::RunId id) {
    if (find(id)->over)
      end(id);
    else
      begin_step(id);
  }
  void end(tune::RunId id) {
    events_.after(0, [this, id] {
      if (find(id) != nullptr) inbox_->put(message_of(tune::Message::Kind::ended, id));
    });
  }

  Behaviour behaviour_;
  GivenClock& clock_;
  Events& events_;
  std::shared_ptr<tune::Inbox> inbox_;
  std::map<std::int64_t, Run> runs_;
  int kills_ = 0, most_ranks_ = 0;
};

/// Runs a study to its end, or until it is interrupted after so many simulated seconds.
struct Simulation {
  GivenClock clock{};
  int kills = 0;       ///< runs that did not end within their grace time
  int most_ranks = 0;  ///< that a trial was given

  tune::Analysis run(const tune::Options& options, const Behaviour& behaviour,
                     std::optional<double> interrupt_after = std::nullopt) {
    Events events(clock);
    std::atomic<bool> interrupted{false};
    if (interrupt_after) events.after(*interrupt_after, [&interrupted] { interrupted = true; });
    SimulatedExecutor* executor = nullptr;
    tune::StudySetup setup;
    setup.options = options;
    setup.per_trial = options.resources_per_trial;
    setup.interrupted = &interrupted;
    setup.clock = &clock;
    setup.make_executor = [&](const tune::ExecutorPlace& place) {
      auto made = std::make_unique<SimulatedExecutor>(behaviour, clock, events, place.inbox);
      executor = made.get();
      return made;
    };
    tune::Study study(std::move(setup));
    study.run();
    kills += executor->kills();
    most_ranks = executor->most_ranks();
    return study.analysis();
  }
};

}  // namespace kolo::test

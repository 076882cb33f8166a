#include "unit/tune/controller_simulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/retry.h"
#include "support/simulated_disk.h"
#include "tune/study/study.h"

namespace kolo::test {

using namespace tune;

namespace {

constexpr int kMostSessions = 60;

Behaviour::Saves saves_of(std::uint64_t draw) {
  constexpr Behaviour::Saves kAll[] = {Behaviour::Saves::on_request, Behaviour::Saves::with_reports,
                                       Behaviour::Saves::never};
  return kAll[draw];
}

}  // namespace

/// Passes everything on, sees what the controller does, and repeats what old runs have said.
class ControllerSimulation::WatchedExecutor final : public TrialExecutor {
 public:
  WatchedExecutor(ControllerSimulation& simulation, Events& events, std::shared_ptr<Inbox> inbox)
      : simulation_(simulation),
        events_(events),
        inbox_(std::move(inbox)),
        inner_(simulation.behaviour(), simulation.clock_, events, inbox_) {
    inbox_->witness = [this](const Message& message) {
      if (message.kind == Message::Kind::report)
        reported_[message.id.trial] = message.metrics.at_path("n").as_integer();
      if (message.kind == Message::Kind::checkpoint) reported_.erase(message.id.trial);
    };
  }

  void start(StartOrder order) override {
    const auto trial = order.id.trial;
    if (simulation_.over_.contains(trial))
      simulation_.fail(fmt::format("trial {} is started after its end was stored", trial));
    if (!running_.insert(trial).second)
      simulation_.fail(fmt::format("trial {} runs twice at a time", trial));
    if (order.checkpoint && std::stoll(read_file(*order.checkpoint / "state")) != order.iteration)
      simulation_.fail(fmt::format("the checkpoint of trial {} is another one", trial));
    inner_.start(std::move(order));
  }
  void answer(RunId id, Answer answer) override {
    if (simulation_.is_dead_ || simulation_.has_no_power()) return;
    if (const auto found = reported_.find(id.trial); found != reported_.end()) {
      // A trial that is told to stop twice was told before this report: it does not count.
      if (answer.reply != Reply::stop) simulation_.answered_[id.trial].insert(found->second);
      reported_.erase(found);
    }
    inner_.answer(id, answer);
  }
  void stop(RunId id) override { inner_.stop(id); }
  void kill(RunId id) override { inner_.kill(id); }
  void forget(RunId id) override {
    running_.erase(id.trial);
    reported_.erase(id.trial);
    inner_.forget(id);
    if (simulation_.random_.below(4) == 0) say_again(id);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return true; }
  [[nodiscard]] std::size_t running() const noexcept { return inner_.running(); }

 private:
  void say_again(RunId id) {
    const bool is_report = simulation_.random_.below(2) == 0;
    events_.after(static_cast<double>(simulation_.random_.below(4)), [this, id, is_report] {
      Message message{is_report ? Message::Kind::report : Message::Kind::ended, id};
      message.came = simulation_.clock_.now();
      if (is_report) message.metrics = {{"score", -1.0}, {"n", 999}};
      // It has not been taken, and nothing that it says may be.
      const auto witness = std::exchange(inbox_->witness, nullptr);
      inbox_->put(std::move(message));
      inbox_->witness = witness;
    });
  }

  ControllerSimulation& simulation_;
  Events& events_;
  std::shared_ptr<Inbox> inbox_;
  SimulatedExecutor inner_;
  std::set<std::int64_t> running_;
  std::map<std::int64_t, std::int64_t> reported_;  // not answered yet: the iteration, by trial
};

ControllerSimulation::ControllerSimulation(std::uint64_t number, std::filesystem::path folder,
                                           Faults faults)
    : number_(number),
      folder_(std::move(folder)),
      faults_(faults),
      random_(Random(number).stream("controller")),
      misfortunes_(static_cast<int>(random_.below(7))),
      trials_(1 + static_cast<int>(random_.below(4))),
      slots_(1 + static_cast<int>(random_.below(3))),
      steps_(1 + static_cast<std::int64_t>(random_.below(4))),
      saves_(saves_of(random_.below(3))) {
  constexpr const char* kSchedulers[] = {"fifo", "asha", "median_stopping_rule"};
  scheduler_ = kSchedulers[random_.below(3)];
  if (faults >= Faults::disk_lies) disk_ = std::make_unique<SimulatedDisk>(folder_);
  if (faults == Faults::disk_lies) disk_->lie();
}

ControllerSimulation::~ControllerSimulation() = default;

bool ControllerSimulation::has_no_power() const { return disk_ && disk_->has_failed(); }

std::string ControllerSimulation::storage() const {
  const std::string file = (folder_ / "kolo.db").string();
  const bool flushes = faults_ == Faults::power || faults_ == Faults::disk_lies;
  return flushes ? "sqlite:///" + file + "?synchronous=full" : file;
}

std::string ControllerSimulation::run() {
  try {
    play();
  } catch (const std::exception& error) {
    fail(error.what());  // of a database that cannot be read any more
  }
  return wrong_;
}

void ControllerSimulation::play() {
  for (int sessions = 0; wrong_.empty(); ++sessions) {
    if (sessions == kMostSessions) return fail("it does not come to an end");
    const Session how = session();
    if (has_no_power()) {
      restore_power();
      look_at_what_is_stored();
      continue;
    }
    look_at_what_is_stored();
    if (how == Session::finished) return check_end();
  }
}

Options ControllerSimulation::options() const {
  Options options;
  options.name = fmt::format("s{}{}", number_, faults_ == Faults::database_lies ? "-lies" : "");
  options.local_dir = folder_.string();
  options.storage = storage();
  options.verbose = 0;
  options.loggers = {};
  options.total_resources = Resources{.cpu = static_cast<double>(slots_)};
  options.metric = "score";
  options.mode = "max";
  options.num_samples = trials_;
  options.config = {{"x", uniform(0, 1)}};
  options.max_failures = -1;
  options.scheduler.name = scheduler_;
  options.scheduler.time_attr = "training_iteration";
  options.resume = Resume::automatic;
  options.keep_checkpoints_num = 1;
  return options;
}

Behaviour ControllerSimulation::behaviour() {
  Behaviour behaviour;
  behaviour.saves = saves_;
  behaviour.last_iteration = steps_;
  behaviour.step = [](const Value& config, double& state, std::int64_t iteration) {
    state = static_cast<double>(iteration);
    return Value{{"score", config.at_path("x").as_number() * state}, {"n", iteration}};
  };
  behaviour.step_seconds = [](std::int64_t trial) { return 1 + 0.3 * static_cast<double>(trial); };
  behaviour.save_seconds = [](std::int64_t trial) { return trial % 2 == 0 ? 0.0 : 2.5; };
  behaviour.failure = [this](RunId) -> std::string {
    if (misfortunes_ == 0 || random_.below(12) != 0) return "";
    --misfortunes_;
    return "it fell over";
  };
  behaviour.failure_after = behaviour.failure;
  return behaviour;
}

void ControllerSimulation::add_faults(Events& events, FlakyDatabase& database,
                                      std::atomic<bool>& interrupted) {
  // At each commit: the process may die on either side of it, and the answer may be lost.
  database.around_commit = [this, &database](bool has_happened) {
    if (has_no_power()) {
      database.down = is_dead_ = true;
      throw Crash{};
    }
    if (misfortunes_ == 0 || random_.below(14) != 0) return;
    --misfortunes_;
    database.failure = random_.below(2) == 0 ? ErrorCode::io : ErrorCode::unavailable;
    if (random_.below(2) == 0) {
      database.down = true;  // what destructors want to write is not written any more
      is_dead_ = true;
      throw Crash{};
    }
    (has_happened ? database.lost_commit : database.refused_commit) = 1;
  };
  while (misfortunes_ > 0 && random_.below(2) == 0) {
    --misfortunes_;
    const double when = static_cast<double>(random_.below(12));
    switch (random_.below(3)) {
      case 0:
        events.after(when, [&database] { database.down = true; });
        events.after(when + static_cast<double>(random_.below(30)),
                     [&database] { database.down = false; });
        break;
      case 1: events.after(when, [&interrupted] { interrupted = true; }); break;
      case 2:
        events.after(when, [this] {
          clock_.step_date(std::chrono::seconds(static_cast<long>(random_.below(8000)) - 4000));
        });
        break;
    }
  }
}

ControllerSimulation::Session ControllerSimulation::session() {
  Events events(clock_);
  std::atomic<bool> interrupted{false};
  is_dead_ = false;
  if (disk_ && misfortunes_ > 0 && random_.below(2) == 0) {
    --misfortunes_;
    disk_->fail_after(static_cast<std::int64_t>(random_.below(400)));
  }
  WatchedExecutor* executor = nullptr;
  StudySetup setup;
  setup.options = options();
  setup.per_trial = {.cpu = 1};
  setup.interrupted = &interrupted;
  setup.clock = &clock_;
  setup.makes_directories = saves_ != Behaviour::Saves::never;
  setup.connect = [&] {
    auto database = std::make_unique<FlakyDatabase>(store::open_database(storage()));
    database->is_deaf = true;
    database->lies = faults_ == Faults::database_lies && random_.below(20) == 0;
    add_faults(events, *database, interrupted);
    return database;
  };
  setup.make_executor = [&](const ExecutorPlace& place) {
    auto made = std::make_unique<WatchedExecutor>(*this, events, place.inbox);
    executor = made.get();
    return made;
  };
  try {
    Study study(std::move(setup));
    study.run();
    if (executor->running() != 0) fail("the study ends and leaves runs behind");
    return study.was_interrupted() ? Session::interrupted : Session::finished;
  } catch (const Crash&) {
    return Session::died;
  } catch (const Error& error) {
    if (!Retry::may_pass(error)) fail(error.what());
    return Session::died;
  } catch (const std::exception& error) {
    fail(error.what());
    return Session::died;
  }
}

/// Nothing may be lost that was flushed; without flushes, the last commits may be.
void ControllerSimulation::restore_power() {
  disk_->restart(random_);
  if (faults_ != Faults::power_normal) return;
  over_.clear();
  answered_.clear();
}

void ControllerSimulation::look_at_what_is_stored() {
  const auto database = store::open_database(storage());
  store::StudyStore store(*database);
  const auto study = store.find(options().name);
  if (!study) {
    if (!answered_.empty()) fail("the study is not stored, and reports were answered");
    return;
  }
  for (const auto& trial : store.trials(study->id))
    if (trial.ended_seq) over_.insert(trial.number);
  std::map<std::int64_t, std::set<std::int64_t>> stored;
  store.each_report(study->id, [&](store::ReportRecord& report) {
    stored[report.trial].insert(report.iteration);
    if (report.metrics.find("999") != std::string::npos) fail("what an old run says is stored");
  });
  for (const auto& [trial, iterations] : answered_)
    for (const auto iteration : iterations)
      if (!stored[trial].contains(iteration))
        fail(fmt::format("report {} of trial {} was answered and is lost", iteration, trial));
}

void ControllerSimulation::check_end() {
  if (over_.size() != static_cast<std::size_t>(trials_))
    fail(fmt::format("the study has finished with {} of {} trials", over_.size(), trials_));
}

}  // namespace kolo::test

// Launchers that share a database, and everything that may go wrong between them, in an order that
// a number decides (support/schedules.h): launchers die, at any write, stall for longer than their
// lease, lose the database, lose the answers of commits that have or have not taken place; disks
// run full; clocks are set.
//
// Whatever happens, in the end every job has finished, once, and was not started again after its
// end was committed.
#include <fmt/format.h>

#include <map>
#include <set>

#include "kolo/random.h"
#include "support/memory_folder.h"
#include "support/schedules.h"
#include "unit/jobs/pilot_fixture.h"

namespace kolo::jobs {
namespace {

/// One launcher with a connection of its own.
class SimulatedLauncher {
 public:
  SimulatedLauncher(const std::filesystem::path& database, test::GivenClock& clock)
      : clock_(clock), jobs_(JobDatabase::open(database)) {
    auto& body = body_of(jobs_);
    auto flaky = std::make_unique<test::FlakyDatabase>(std::move(body.store));
    connection = flaky.get();
    body.store = std::move(flaky);
    body.clock = body.lease_clock = &clock_;
    options_.nodes.push_back({.name = "n", .host = "n", .command = {}});
  }

  test::FlakyDatabase* connection = nullptr;

  [[nodiscard]] bool is_up() const { return pilot_.has_value(); }

  void begin() {
    tasks_ = {};
    over_.clear();
    mend();
    const std::vector<Node> nodes{{.name = "n", .cores = 2}};
    pilot_.emplace(jobs_, options_, nodes, tasks_, clock_, clock_.now() + 1000h, summary_);
  }
  /// Its connection works.
  void mend() {
    connection->down = connection->lies = false;
    connection->lost_commit = connection->refused_commit = 0;
    connection->around_commit = {};
  }
  /// As kill -9: nothing is said, and its tasks die with it.
  void die() {
    connection->down = true;
    pilot_.reset();
  }
  /// As kill -9 at the next commit, before or after it takes place.
  void die_at_commit(bool after) {
    connection->around_commit = [after](bool has_happened) {
      if (has_happened == after) throw test::Crash{};
    };
  }

  void turn() {
    attempt([this] { pilot_->turn(); });
  }
  void tell_news() {
    attempt([this] {
      pilot_->notified();
      pilot_->turn();
    });
  }

  /// Tasks that run: started, and not told as ended.
  [[nodiscard]] std::vector<exec::TaskId> running() const {
    std::vector<exec::TaskId> ids;
    for (const auto& started : tasks_.started)
      if (!over_.contains(started.task.id)) ids.push_back(started.task.id);
    return ids;
  }
  void end(exec::TaskId task) {
    over_.insert(task);
    const bool was_told =
        std::find(tasks_.ended.begin(), tasks_.ended.end(), task) != tasks_.ended.end();
    attempt([&] { pilot_->task_ended(task, was_told ? kKilledBySigterm : exited(0), ""); });
  }

 private:
  /// A launcher that others have taken for lost begins again as a new one.
  template <class Call>
  void attempt(Call&& call) {
    try {
      call();
    } catch (const test::Crash&) {
      die();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::failed_precondition) throw;
      die();
    }
  }

  test::GivenClock& clock_;
  JobDatabase jobs_;
  LauncherOptions options_;
  NotedTasks tasks_;
  std::set<exec::TaskId> over_;
  LauncherSummary summary_;
  std::optional<Pilot> pilot_;
};

/// Launchers and a database, for many schedules one after the other.
class PilotSimulation {
 public:
  /// `database_lies`: a defect that the simulation must find.
  explicit PilotSimulation(bool database_lies) : database_lies_(database_lies) {
    body_of(jobs_).clock = body_of(jobs_).lease_clock = &clock_;
    jobs_.set_application({.name = "app", .executable = "/bin/app"});
    for (int i = 0; i < 3; ++i)
      launchers_.push_back(std::make_unique<SimulatedLauncher>(scratch_.path() / "db", clock_));
  }

  /// Plays one to its end. Returns what went wrong, "" for nothing.
  std::string play(std::uint64_t number) {
    Random random = Random(number).stream("pilot");
    wrong_.clear();
    std::vector<JobId> ids;
    for (std::uint64_t i = 0, count = 1 + random.below(4); i < count; ++i) ids.push_back(add());
    for (std::uint64_t steps = 20 + random.below(60); steps > 0; --steps) {
      auto& launcher = *launchers_[random.below(launchers_.size())];
      if (!launcher.is_up())
        launcher.begin();
      else
        step(launcher, random);
    }
    if (!settle(ids)) return "jobs are stuck";
    for (const JobId id : ids) check(id);
    return wrong_;
  }

 private:
  JobId add() {
    Job job;
    job.name = "job", job.workflow = "flow", job.application = "app";
    return jobs_.create(job);
  }

  void step(SimulatedLauncher& launcher, Random& random) {
    launcher.connection->failure = random.below(2) == 0 ? ErrorCode::io : ErrorCode::unavailable;
    switch (random.below(14)) {
      case 0: launcher.connection->down = !launcher.connection->down; break;
      case 1: launcher.connection->lost_commit = 1 + static_cast<int>(random.below(3)); break;
      case 2: launcher.connection->refused_commit = 1 + static_cast<int>(random.below(3)); break;
      case 3: launcher.die(); break;
      case 4: clock_.advance(std::chrono::seconds(random.below(90))); break;
      case 5:
        if (const auto running = launcher.running(); !running.empty())
          launcher.end(running[random.below(running.size())]);
        break;
      case 6: launcher.tell_news(); break;
      case 7:
        clock_.step_date(std::chrono::seconds(static_cast<long>(random.below(8000)) - 4000));
        break;
      case 8: launcher.die_at_commit(random.below(2) == 0); break;
      case 9: launcher.connection->lies = database_lies_; break;
      default: launcher.turn(); clock_.advance(20ms);
    }
  }

  /// Nothing goes wrong any more; false if the jobs do not end nevertheless.
  bool settle(const std::vector<JobId>& ids) {
    for (int round = 0; round < 400; ++round) {
      for (auto& launcher : launchers_) {
        launcher->mend();
        if (!launcher->is_up()) launcher->begin();
        launcher->tell_news();
        if (!launcher->is_up()) continue;
        for (const auto task : launcher->running())
          if (launcher->is_up()) launcher->end(task);
      }
      clock_.advance(round % 40 == 39 ? std::chrono::milliseconds(61s) : 500ms);
      if (std::all_of(ids.begin(), ids.end(),
                      [this](JobId id) { return is_end(jobs_.job(id).state); }))
        return true;
    }
    return false;
  }

  void check(JobId id) {
    int finished = 0, done = 0;
    for (const auto& entry : jobs_.history(id)) {
      if (entry.state == JobState::running && done > 0)
        wrong_ = "a job is started after its end was committed";
      done += entry.state == JobState::run_done ? 1 : 0;
      finished += entry.state == JobState::job_finished ? 1 : 0;
    }
    if (jobs_.job(id).state != JobState::job_finished || done != 1 || finished != 1)
      wrong_ = fmt::format("a job is {}, has run to its end {} times and has finished {} times",
                           to_string(jobs_.job(id).state), done, finished);
  }

  const bool database_lies_;
  std::string wrong_;
  TempDir scratch_{test::memory_folder("kolo-pilot")};
  JobDatabase jobs_ = JobDatabase::init(scratch_.path() / "db");
  test::GivenClock clock_;
  std::vector<std::unique_ptr<SimulatedLauncher>> launchers_;
};

/// Launchers look at all jobs that there are, so that a database serves only some schedules.
constexpr std::uint64_t kSchedulesOfADatabase = 100;

class PilotSimulationTest : public testing::Test {
 protected:
  std::string play(std::uint64_t number, bool database_lies = false) {
    if (!simulation_ || number % kSchedulesOfADatabase == 0) simulation_.emplace(database_lies);
    return simulation_->play(number);
  }

 private:
  std::optional<PilotSimulation> simulation_;
};

TEST_F(PilotSimulationTest, EveryJobFinishesOnce) {
  test::play_schedules(1500, [this](std::uint64_t number) { return play(number); });
}

TEST_F(PilotSimulationTest, FindsADatabaseThatLies) {
  EXPECT_NE(test::first_failure(200, [this](std::uint64_t number) { return play(number, true); }),
            0U);
}

}  // namespace
}  // namespace kolo::jobs

// Schedulers inside studies, in simulated time: what they decide happens, also when saves are slow,
// places are few and reports are late.
#include <set>

#include "kolo/search/scheduler.h"
#include "store/study_store.h"
#include "support/memory_folder.h"
#include "tune/protocol/value_text.h"
#include "unit/tune/simulated_study.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using Saves = Behaviour::Saves;

class ScheduledStudies : public StudyTest {
 protected:
  ScheduledStudies() : StudyTest(memory_folder("kolo-study")) {}

  Simulation simulation_;

  [[nodiscard]] Options maximize(const std::string& name, int slots) const {
    auto how = options(name);
    how.metric = "score";
    how.mode = "max";
    how.total_resources = Resources{.cpu = static_cast<double>(slots)};
    how.loggers = {};
    return how;
  }

  std::vector<store::EventRecord> events(const std::string& study, const std::string& kind) const {
    auto database = store::open_database((scratch_.path() / "kolo.db").string());
    store::StudyStore store(*database);
    std::vector<store::EventRecord> found;
    for (auto& event : store.events(store.at(study).id))
      if (event.kind == kind) found.push_back(event);
    return found;
  }

  /// The lines of pbt_global.txt; none without the file.
  std::vector<Value> policy(const std::string& study) const {
    const auto file = scratch_.path() / study / "pbt_global.txt";
    std::vector<Value> lines;
    if (!std::filesystem::exists(file)) return lines;
    std::istringstream text(read_file(file));
    for (std::string line; std::getline(text, line);) lines.push_back(decode(line, file.string()));
    return lines;
  }
};

/// The score of a step is the trial's x; it saves in ten seconds when it is asked to.
Behaviour slow_saver() {
  Behaviour behaviour;
  behaviour.step = [](const Value& config, double& state, std::int64_t iteration) {
    state = static_cast<double>(iteration);
    return Value{{"score", config.at_path("x")}};
  };
  behaviour.save_seconds = [](std::int64_t) { return 10.0; };
  return behaviour;
}

/// Adds its rate to its state, which is its score.
Behaviour grower() {
  Behaviour behaviour;
  behaviour.step = [](const Value& config, double& state, std::int64_t) {
    state += config.at_path("rate").as_number();
    return Value{{"score", state}};
  };
  return behaviour;
}

Scheduling population(std::map<std::string, Value> settings) {
  auto scheduler = PopulationBasedTraining({{"rate", uniform(0, 1)}}, std::move(settings));
  scheduler.time_attr = "training_iteration";
  return scheduler;
}

// Eight of nine trials still save when the last one arrives and the bracket is halved.
TEST_F(ScheduledStudies, HyperBandStopsTrialsThatAreStillSaving) {
  auto how = maximize("band", 9);
  how.config = {{"x", grid_search({1, 2, 3, 4, 5, 6, 7, 8, 9})}};
  how.scheduler = HyperBandForBOHB({{"max_t", 9}, {"reduction_factor", 3}});
  auto behaviour = slow_saver();
  behaviour.step_seconds = [](std::int64_t trial) { return 1 + 0.1 * static_cast<double>(trial); };
  const auto analysis = simulation_.run(how, behaviour);
  std::vector<std::size_t> reports;
  for (const auto& trial : analysis.trials()) reports.push_back(trial.results.size());
  EXPECT_THAT(reports, testing::ElementsAre(1, 1, 1, 1, 1, 1, 3, 3, 9));
  EXPECT_EQ(simulation_.kills, 0);
}

// The worst copies the best as it was at the meeting, although both are saving at that time.
TEST_F(ScheduledStudies, SynchronousPopulationsCopyWhatWasSavedForTheMeeting) {
  for (const Saves saves : {Saves::on_request, Saves::with_reports, Saves::never}) {
    const std::string name = "synch" + std::to_string(static_cast<int>(saves));
    auto how = maximize(name, 4);
    how.config = {{"rate", grid_search({0.125, 0.25, 0.5, 1.0})}};
    how.stop = {{"training_iteration", 12}};
    how.scheduler = population({{"perturbation_interval", 4}, {"synch", true}});
    auto behaviour = grower();
    behaviour.saves = saves;
    behaviour.save_seconds = [](std::int64_t trial) { return 10.0 * static_cast<double>(trial); };
    const auto analysis = simulation_.run(how, behaviour);

    const auto lines = policy(name);
    EXPECT_EQ(lines.size(), 2U);  // one of four at 4 and 8
    EXPECT_EQ(events(name, "clone").size(), lines.size());
    ASSERT_GE(lines.size(), 1U);
    EXPECT_EQ(lines[0].as_list()[0].as_integer(), 0);
    EXPECT_EQ(lines[0].as_list()[1].as_integer(), 3);
    const auto& copied = analysis.trials()[0];
    ASSERT_GE(copied.results.size(), 5U);
    const double rate = lines[0].as_list()[5].at_path("rate").as_number();
    const double score = copied.results[4].at_path("score").as_number();
    if (saves == Saves::never)  // neither has a checkpoint: it begins again, with what it learnt
      EXPECT_DOUBLE_EQ(score, rate);
    else
      EXPECT_DOUBLE_EQ(score, 4 * 1.0 + rate);
  }
}

// A meeting is one of the whole population, however few run at a time.
TEST_F(ScheduledStudies, ThePopulationIsTheStudyNotWhatHappensToRun) {
  for (const int slots : {1, 2, 8}) {
    const std::string name = "few" + std::to_string(slots);
    auto how = maximize(name, slots);
    how.num_samples = 8;
    how.config = {{"rate", uniform(0, 1)}};
    how.stop = {{"training_iteration", 9}};
    how.scheduler = population({{"perturbation_interval", 3}, {"synch", true}});
    const auto analysis = simulation_.run(how, grower());
    EXPECT_EQ(analysis.trials().size(), 8U);
    const auto lines = policy(name);
    EXPECT_EQ(lines.size(), 4U) << slots << " slots";  // two of eight at 3 and 6
    for (const auto& line : lines) {
      EXPECT_EQ(line.as_list()[2], line.as_list()[3]) << line.to_string();
    }
  }
}

// A source that was told to save and go on has not saved yet when another wants to copy it.
TEST_F(ScheduledStudies, ACopyWaitsForTheSaveOfItsSource) {
  auto how = maximize("late", 2);
  how.config = {{"rate", grid_search({1.0, 0.25})}};
  how.stop = {{"training_iteration", 8}};
  how.scheduler = population({{"perturbation_interval", 3}});
  auto behaviour = grower();
  // The good one is slower: it saves while the other comes for the second time.
  behaviour.save_seconds = [](std::int64_t) { return 100.0; };
  behaviour.step_seconds = [](std::int64_t trial) { return trial == 0 ? 1.5 : 1.0; };
  const auto analysis = simulation_.run(how, behaviour);
  const auto lines = policy("late");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(events("late", "clone").size(), lines.size());
  EXPECT_EQ(lines[0].as_list()[2].as_integer(), 6);
  EXPECT_EQ(lines[0].as_list()[3].as_integer(), 3);
  const auto& copied = analysis.trials()[1];
  ASSERT_GE(copied.results.size(), 7U);
  EXPECT_EQ(copied.results[6].at_path("training_iteration").as_integer(), 4);
  EXPECT_DOUBLE_EQ(copied.results[6].at_path("score").as_number(),
                   3 * 1.0 + lines[0].as_list()[5].at_path("rate").as_number());
}

TEST_F(ScheduledStudies, MutationsThatTheSpaceLacksAreFilledIn) {
  for (const std::string kind : {"pbt", "pb2"}) {
    auto how = maximize(kind, 4);
    how.num_samples = 4;
    how.config = {{"x", uniform(0, 1)}};
    how.stop = {{"training_iteration", 3}};
    how.scheduler = kind == "pbt" ? population({{"perturbation_interval", 2}})
                                  : PB2({{"rate", uniform(0, 1)}}, {{"perturbation_interval", 2}});
    std::set<double> rates;
    auto behaviour = grower();
    const auto step = behaviour.step;
    behaviour.step = [&](const Value& config, double& state, std::int64_t iteration) {
      if (iteration == 1) rates.insert(config.at_path("rate").as_number());
      return step(config, state, iteration);
    };
    const auto analysis = simulation_.run(how, behaviour);
    EXPECT_EQ(rates.size(), 4U);
    for (const auto& trial : analysis.trials())
      EXPECT_NE(trial.config.find_path("rate"), nullptr) << trial.config.to_string();
  }
}

// The first trial ends by itself, or by a rule, where others are measured against it.
TEST_F(ScheduledStudies, OthersAreJudgedByTheLastResultToo) {
  for (const std::string scheduler : {"asha", "median_stopping_rule", "successive_halving"}) {
    for (const bool done : {true, false}) {
      const std::string name = scheduler + (done ? "-done" : "-rule");
      auto how = maximize(name, 1);
      how.config = {{"x", grid_search({9, 8, 7, 1})}};
      how.scheduler.name = scheduler;
      how.scheduler.time_attr = "training_iteration";
      if (scheduler == "asha")
        how.scheduler.settings = {{"max_t", 100}, {"grace_period", 3}, {"reduction_factor", 3}};
      else if (scheduler == "successive_halving")
        how.scheduler.settings = {{"max_steps", 100}, {"min_steps", 3}, {"reduction_factor", 3}};
      else
        how.scheduler.settings = {{"grace_period", 3}, {"min_samples_required", 3}};
      if (!done) how.stop = {{"score_now", 7}};
      auto behaviour = slow_saver();
      behaviour.last_iteration = 6;
      behaviour.step = [done](const Value& config, double&, std::int64_t iteration) {
        const double x = config.at_path("x").as_number();
        Value result{{"score", x}, {"score_now", iteration == 3 ? x : 0.0}};
        if (done && x > 1 && iteration == 3) result.as_dict()["done"] = true;
        return result;
      };
      const auto analysis = simulation_.run(how, behaviour);
      EXPECT_EQ(analysis.trials()[0].results.size(), 3U) << name;
      EXPECT_FALSE(analysis.trials()[0].stopped) << name;
      EXPECT_TRUE(analysis.trials()[3].stopped) << name;
      EXPECT_EQ(analysis.trials()[3].results.size(), 3U) << name;
    }
  }
}

// Tune's defaults: populations and the median rule count seconds, the others iterations.
TEST_F(ScheduledStudies, TimeIsWhatItIsInTune) {
  auto how = maximize("seconds", 4);
  how.config = {{"rate", grid_search({0.0625, 0.25, 0.5, 1.0})}};
  how.stop = {{"training_iteration", 5}};
  how.scheduler = PopulationBasedTraining({{"rate", uniform(0, 1)}});  // every 60 seconds
  auto behaviour = grower();
  behaviour.step_seconds = [](std::int64_t trial) { return 30 + static_cast<double>(trial); };
  simulation_.run(how, behaviour);
  const auto lines = policy("seconds");
  ASSERT_FALSE(lines.empty());
  // What a policy holds are iterations, whatever time is counted in.
  EXPECT_EQ(lines[0].as_list()[2].as_number(), 4);
  EXPECT_EQ(lines[0].as_list()[3].as_number(), 3);

  how = maximize("median", 1);
  how.config = {{"x", grid_search({9, 8, 7, 1})}};
  how.scheduler.name = "median_stopping_rule";  // a grace period of 60 seconds
  behaviour = slow_saver();
  behaviour.save_seconds = [](std::int64_t) { return 0.0; };
  behaviour.step_seconds = [](std::int64_t) { return 25.0; };
  behaviour.last_iteration = 6;
  const auto analysis = simulation_.run(how, behaviour);
  EXPECT_TRUE(analysis.trials()[3].stopped);
  EXPECT_EQ(analysis.trials()[3].results.size(), 3U);
}

// A save may take longer than the grace time of a run that is told to stop.
TEST_F(ScheduledStudies, ARunThatSavesIsNotKilled) {
  auto how = maximize("patience", 1);
  how.grace = std::chrono::seconds(5);
  how.config = {{"x", grid_search({1, 2, 3})}};
  how.scheduler = HyperBandForBOHB({{"max_t", 3}, {"reduction_factor", 3}});
  auto behaviour = slow_saver();
  behaviour.save_seconds = [](std::int64_t) { return 60.0; };
  const auto analysis = simulation_.run(how, behaviour);
  EXPECT_EQ(simulation_.kills, 0);
  EXPECT_EQ(analysis.trials()[2].results.size(), 3U);
}

/// Settings under which every scheduler has something to do within 27 steps.
std::map<std::string, Value> lively(std::string_view scheduler) {
  if (scheduler == "successive_halving") return {{"max_steps", 27}};
  if (scheduler == "median_stopping_rule")
    return {{"grace_period", 3}, {"min_samples_required", 2}};
  if (scheduler == "pbt" || scheduler == "pb2") return {{"perturbation_interval", 5}};
  if (scheduler == "fifo") return {};
  return {{"max_t", 27}, {"reduction_factor", 3}};
}

// Every scheduler, under every circumstance, and with an interruption in the middle.
TEST_F(ScheduledStudies, WhatIsDecidedHappens) {
  struct Circumstance {
    std::string name;
    int slots;
    double save, delay;
  };
  const std::vector<Circumstance> circumstances = {
      {"slow", 12, 9, 0}, {"few", 2, 1, 0}, {"late", 5, 3, 4}};
  for (const auto& info : search::schedulers()) {
    if (info.name == "pbt_replay") continue;  // repeats the files that others write
    const bool populations = info.name == "pbt" || info.name == "pb2";
    for (const auto& [label, slots, save, delay] : circumstances) {
      for (const Saves saves : {Saves::on_request, Saves::with_reports, Saves::never}) {
        for (const std::optional<double> interrupt : {std::optional<double>(), {20.5}}) {
          const std::string name = fmt::format("{}-{}-{}-{}", info.name, label,
                                               static_cast<int>(saves), interrupt.has_value());
          SCOPED_TRACE(name);
          auto how = maximize(name, slots);
          how.num_samples = 12;
          how.config = {{"rate", uniform(0, 1)}};
          how.stop = {{"training_iteration", 27}};
          how.grace = std::chrono::minutes(2);  // an interrupted run may save first
          how.scheduler.name = std::string(info.name);
          how.scheduler.settings = lively(info.name);
          how.scheduler.time_attr = "training_iteration";
          auto behaviour = grower();
          behaviour.saves = saves;
          behaviour.step_seconds = [](std::int64_t trial) {
            return 1 + 0.25 * static_cast<double>(trial % 3);
          };
          behaviour.save_seconds = [save = save](std::int64_t trial) {
            return save * static_cast<double>(trial % 4);
          };
          behaviour.delay_seconds = [delay = delay](std::int64_t trial) {
            return trial % 5 == 0 ? delay : 0;
          };
          if (interrupt) {
            simulation_.run(how, behaviour, interrupt);
            how.resume = Resume::yes;
          }
          const auto analysis = simulation_.run(how, behaviour);
          ASSERT_EQ(analysis.trials().size(), 12U);
          for (const auto& trial : analysis.trials()) {
            EXPECT_EQ(trial.status, TrialStatus::terminated) << trial.error;
            EXPECT_GE(trial.results.size(), 1U);
            // Nobody reports after the study has decided about it. A copy of one that was through
            // makes one more step.
            EXPECT_LE(trial.iteration, populations ? 28 : 27);
          }
          EXPECT_EQ(policy(name).size(), events(name, "clone").size());
          EXPECT_EQ(policy(name).empty(), !populations);
        }
      }
    }
  }
  EXPECT_EQ(simulation_.kills, 0);
}

}  // namespace
}  // namespace kolo::test

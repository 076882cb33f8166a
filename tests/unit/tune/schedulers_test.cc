// Schedulers in a study: stopping, pausing with and without checkpoints, populations.
#include <cmath>
#include <mutex>
#include <set>
#include <sstream>

#include "base/json.h"
#include "search/space/json_value.h"
#include "store/study_store.h"
#include "tune/output/report_html.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneSchedulers : public StudyTest {};

/// A trial whose loss is its x, with a checkpoint for each report if wanted.
auto curve(bool saves, int epochs = 9) {
  return [saves, epochs](const Config& config, Session& session) {
    int epoch = 0;
    if (auto checkpoint = session.checkpoint()) epoch = std::stoi(read_file(*checkpoint / "epoch"));
    while (++epoch <= epochs) {
      if (saves)
        session.save_checkpoint([&](const std::filesystem::path& directory) {
          write_file_atomically(directory / "epoch", std::to_string(epoch));
        });
      session.report({{"loss", config.at_path("x").as_number() + 1.0 / epoch}, {"epoch", epoch}});
    }
  };
}

void expect_whole(const TrialResult& trial) {
  for (std::size_t i = 0; i < trial.results.size(); ++i)
    EXPECT_EQ(trial.results[i].at_path("epoch").as_integer(), static_cast<std::int64_t>(i) + 1)
        << trial.number;
}

/// Stops what is not good enough after three epochs.
class HalfWay final : public search::Scheduler {
 public:
  explicit HalfWay(search::SchedulerOptions options) : Scheduler("half_way", std::move(options)) {}

 private:
  search::Decision on_result(Slot /*slot*/, const search::Result& result,
                             std::span<const double> scores) override {
    if (result.time < 3 || scores[0] < 2) return {};
    return {search::Action::stop, {.rule = "half way"}};
  }
};

TEST_F(TuneSchedulers, CanBeAUsersOwn) {
  auto how = minimize("own", "loss");
  how.config = {{"x", grid_search({1, 5})}};
  how.scheduler.make = [](search::SchedulerOptions options) {
    return std::make_unique<HalfWay>(std::move(options));
  };
  const auto analysis = tune::run(curve(false), how);
  ASSERT_EQ(analysis.trials().size(), 2U);
  EXPECT_EQ(analysis.trials()[0].results.size(), 9U);
  EXPECT_EQ(analysis.trials()[1].results.size(), 3U);
  EXPECT_TRUE(analysis.trials()[1].stopped);
  EXPECT_THAT(analysis.trials()[1].why, testing::HasSubstr("half way"));
  how.scheduler.make = [](search::SchedulerOptions) -> std::unique_ptr<search::Scheduler> {
    return nullptr;
  };
  how.name = "none";
  EXPECT_THAT(refusal([&] { tune::run(curve(false), how); }).what(),
              testing::HasSubstr("returned no scheduler"));
}

TEST_F(TuneSchedulers, AshaStopsTheBadOnesAndSaysWhy) {
  auto how = minimize("asha", "loss");
  how.total_resources = Resources{.cpu = 1};
  how.config = {{"x", grid_search({1, 5, 2, 9, 0, 7})}};
  how.scheduler = ASHAScheduler({{"max_t", 9}, {"reduction_factor", 3}});
  const auto analysis = tune::run(curve(false), how);
  EXPECT_EQ(analysis.best_config().at_path("x").as_integer(), 0);
  std::size_t stopped = 0;
  for (const auto& trial : analysis.trials()) {
    expect_whole(trial);
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    if (trial.stopped) {
      ++stopped;
      EXPECT_THAT(trial.why, testing::Not(testing::IsEmpty()));
    }
  }
  EXPECT_GE(stopped, 3U);
  EXPECT_EQ(analysis.trials()[4].results.size(), 9U);
}

TEST_F(TuneSchedulers, HyperBandPausesAndGoesOnFromCheckpoints) {
  for (const bool saves : {true, false}) {
    auto how = minimize(saves ? "saved" : "held", "loss");
    how.total_resources = Resources{.cpu = 2};
    how.num_samples = 17;
    how.config = {{"x", uniform(0, 1)}};
    how.scheduler = HyperBandScheduler({{"max_t", 9}, {"reduction_factor", 3}});
    const auto analysis = tune::run(curve(saves), how);
    ASSERT_EQ(analysis.trials().size(), 17U);
    std::set<std::size_t> lengths;
    for (const auto& trial : analysis.trials()) {
      EXPECT_EQ(trial.status, TrialStatus::terminated) << trial.error;
      expect_whole(trial);
      lengths.insert(trial.results.size());
    }
    EXPECT_GT(lengths.size(), 1U);  // some were cut
    EXPECT_EQ(*lengths.rbegin(), 9U);
  }
}

// Any number of trials in the last bracket; those that wait inside their reports may all be told to
// leave at once.
TEST_F(TuneSchedulers, WhoeverIsToldToLeaveIsNotStartedAgain) {
  for (int samples = 1; samples <= 24; ++samples) {
    auto how = minimize("held" + std::to_string(samples), "loss");
    how.total_resources = Resources{.cpu = 1};
    how.num_samples = samples;
    how.config = {{"x", uniform(0, 1)}};
    how.scheduler = HyperBandScheduler({{"max_t", 9}, {"reduction_factor", 3}});
    const auto analysis = tune::run(curve(false), how);
    for (const auto& trial : analysis.trials()) expect_whole(trial);
  }
}

TEST_F(TuneSchedulers, PopulationsCopyCheckpointsOfTheBest) {
  auto how = options("population");
  how.metric = "score";
  how.mode = "max";
  how.total_resources = Resources{.cpu = 2};
  how.num_samples = 6;
  how.config = {{"rate", uniform(0, 1)}};
  how.stop = {{"training_iteration", 20}};
  how.scheduler =
      PopulationBasedTraining({{"rate", uniform(0, 1)}},
                              {{"time_attr", "training_iteration"}, {"perturbation_interval", 4}});
  const auto grows = [](const Config& config, Session& session) {
    double score = 0;
    if (auto checkpoint = session.checkpoint()) score = std::stod(read_file(*checkpoint / "score"));
    for (;;) {
      score += config.at_path("rate").as_number();
      session.save_checkpoint([&](const std::filesystem::path& directory) {
        write_file_atomically(directory / "score", std::to_string(score));
      });
      session.report({{"score", score}});
    }
  };
  const auto analysis = tune::run(grows, how);
  ASSERT_EQ(analysis.trials().size(), 6U);
  int clones = 0;
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated) << trial.error;
    EXPECT_EQ(trial.iteration, 20);
    // A clone's score jumps by more than its rate could add.
    for (std::size_t i = 1; i < trial.results.size(); ++i)
      clones += trial.results[i].at_path("score").as_number() >
                        trial.results[i - 1].at_path("score").as_number() + 1
                    ? 1
                    : 0;
  }
  EXPECT_GT(clones, 0);

  // What was done is in files, the lines of one trial by themselves, and can be done again.
  const auto directory = std::filesystem::path(analysis.trials()[0].directory).parent_path();
  const auto lines = [](const std::filesystem::path& file) {
    std::istringstream text(read_file(file));
    Value::List lines;
    for (std::string line; std::getline(text, line);)
      lines.push_back(search::value_from_json(Json::parse(line)));
    return lines;
  };
  EXPECT_GE(static_cast<int>(lines(directory / "pbt_global.txt").size()), clones);
  // A study that was killed may have left less: resuming it writes them anew.
  const std::string all = read_file(directory / "pbt_global.txt");
  std::filesystem::remove(directory / "pbt_global.txt");
  auto resumed = how;
  resumed.resume = Resume::yes;
  tune::run(grows, resumed);
  EXPECT_EQ(read_file(directory / "pbt_global.txt"), all);
  std::filesystem::path policy;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("pbt_policy_")) policy = entry.path();
  ASSERT_FALSE(policy.empty());

  auto again = how;
  again.name = "again";
  again.config = Spec(Spec::Dict{});
  again.num_samples = 1;
  again.stop = {{"training_iteration", 40}};  // a copy of one that was through may be the last step
  again.scheduler = PopulationBasedTrainingReplay(policy.string());
  std::vector<double> rates;
  tune::run(
      [&rates](const Config& config, Session& session) {
        rates.push_back(config.at_path("rate").as_number());
        for (;;) {
          session.save_checkpoint([](const std::filesystem::path&) {});
          session.report({{"score", 1.0}});
        }
      },
      again);
  const auto led = lines(policy);
  ASSERT_GT(rates.size(), 1U);
  EXPECT_EQ(rates.front(), led.front().as_list()[4].at_path("rate").as_number());
  EXPECT_EQ(rates.back(), led.back().as_list()[5].at_path("rate").as_number());
}

// Trials that wait and go on elsewhere: in the report no slot has two at a time.
TEST_F(TuneSchedulers, TheTimelineOfTheReportHasOneTrialPerSlot) {
  auto how = minimize("slots", "loss");
  how.total_resources = Resources{.cpu = 2};
  how.num_samples = 17;
  how.config = {{"x", uniform(0, 1)}};
  how.scheduler = HyperBandScheduler({{"max_t", 9}, {"reduction_factor", 3}});
  tune::run(curve(true), how);
  auto database = store::open_database((scratch_.path() / "kolo.db").string());
  store::StudyStore store(*database);
  using Slots = std::map<std::string, std::vector<std::pair<double, double>>>;
  const auto timeline = [&store] {
    const std::string page = report_html(store, "slots");
    const std::string mark = R"(<script id="data" type="application/json">)";
    const auto start = page.find(mark) + mark.size();
    const Json study = Json::parse(page.substr(start, page.find("</script>", start) - start));
    Slots slots;
    for (const auto& trial : study.at("trials"))
      for (const auto& run : trial.at("runs"))
        slots[run[2].get<std::string>()].emplace_back(run[0].get<double>(), run[1].get<double>());
    for (auto& [slot, runs] : slots) std::sort(runs.begin(), runs.end());
    return slots;
  };
  const Slots slots = timeline();
  EXPECT_EQ(slots.size(), 2U);
  for (const auto& [slot, runs] : slots)
    for (std::size_t i = 1; i < runs.size(); ++i)
      EXPECT_LE(runs[i - 1].second, runs[i].first) << "in slot " << slot;
  // Studies of earlier versions have a text instead of JSON.
  ASSERT_GT(database
                ->prepare("UPDATE events SET detail = 'on slot ' || json_extract(detail, '$.slot') "
                          "|| ', before on slot ' || json_extract(detail, '$.slot_before') "
                          "WHERE kind = 'resume'")
                .run(),
            0);
  EXPECT_EQ(timeline(), slots);
}

// Also of a study whose space is written in C++, with functions in it.
TEST_F(TuneSchedulers, TheReportKnowsTheImportanceOfParameters) {
  auto how = minimize("important", "loss");
  how.num_samples = 30;
  how.config = {{"lr", loguniform(1e-4, 1)},
                {"net", Spec{{"kind", choice({"a", "b"})}, {"units", randint(1, 65)}}},
                {"half", sample_from([](const search::ConfigView& config) {
                   return config.at("lr").as_number() / 2;
                 })}};
  tune::run(
      [](const Config& config) {
        tune::report({{"loss", std::log10(config.at_path("lr").as_number())}});
      },
      how);
  auto database = store::open_database((scratch_.path() / "kolo.db").string());
  store::StudyStore store(*database);
  const std::string page = report_html(store, "important");
  const std::string mark = R"(<script id="data" type="application/json">)";
  const auto start = page.find(mark) + mark.size();
  const Json study = Json::parse(page.substr(start, page.find("</script>", start) - start));
  const auto& importance = study.at("importance");
  ASSERT_EQ(importance.size(), 3U);
  EXPECT_EQ(importance[0][0], "lr");
  EXPECT_GT(importance[0][1].get<double>(), 0.95);
  EXPECT_EQ(study.at("parameters")[0].at("log"), true);
}

TEST_F(TuneSchedulers, TrialsBeginFromTheCheckpointOfAnother) {
  auto how = options("nowhere");
  how.metric = "score";
  how.mode = "max";
  how.num_samples = 2;
  how.restore = (std::filesystem::path(how.local_dir) / "start").string();
  const auto trainable = [](const Config&, Session& session) {
    session.report({{"score", std::stod(read_file(*session.checkpoint() / "score"))}});
  };
  EXPECT_THROW(tune::run(trainable, how), Error);
  std::filesystem::create_directories(how.restore);
  write_file_atomically(std::filesystem::path(how.restore) / "score", "41");
  how.name = "there";
  const auto analysis = tune::run(trainable, how);
  for (const auto& trial : analysis.trials())
    EXPECT_EQ(trial.results.back().at_path("score").as_number(), 41) << trial.error;
}

}  // namespace
}  // namespace kolo::test

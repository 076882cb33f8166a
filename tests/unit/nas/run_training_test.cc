// alpha: learning, ends, failures, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "kolo/nas/run.h"
#include "unit/nas/small_problem.h"

namespace kolo::nas {
namespace {

using test::error_of;
using test::plane;
using test::run_alpha;
using test::small_problem;
using testing::HasSubstr;

const Value kLargest{{"arch_seq", Value::List{9}}};

/// What a study would see, and when it says stop.
class RecordingSession : public tune::Session {
 public:
  explicit RecordingSession(std::size_t reports_until_stop = 1000) : until_(reports_until_stop) {}
  bool try_report(const Value& metrics) override {
    reports.push_back(
        {metrics.at_path("budget").as_number(), metrics.at_path("objective").as_number()});
    return reports.size() < until_;
  }
  bool should_stop() const override { return false; }
  bool should_save() const override { return false; }
  void save_checkpoint(
      const std::function<void(const std::filesystem::path& directory)>&) override {}
  std::optional<std::filesystem::path> checkpoint() const override { return std::nullopt; }
  std::int64_t iteration() const override { return 0; }
  const std::string& trial_id() const override { return text_; }
  const std::string& trial_name() const override { return text_; }
  const std::filesystem::path& trial_dir() const override { return path_; }

  std::vector<std::pair<double, double>> reports;

 private:
  std::size_t until_;
  std::string text_;
  std::filesystem::path path_;
};

TEST(Alpha, LearnsAPlane) {
  const hps::RunResult result = run_alpha(small_problem(40), kLargest);
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_GT(result.objectives[0], 0.98);
  EXPECT_EQ(result.metadata.at("epochs"), Value(40));
  EXPECT_EQ(result.metadata.at("n_parameters"), Value(2 * 10 + 10 + 10 + 1));
  EXPECT_EQ(result.metadata.at("ended_by"), Value("epochs"));
  EXPECT_GT(result.metadata.at("training_time").as_number(), 0);
}

TEST(Alpha, RefusesAnObjectiveThatNoMetricHasBeforeItTrains) {
  NaProblem problem = small_problem();
  problem.objective("-val_r3__max");
  const std::string advice =
      "metric 'val_r3' is unknown; did you mean 'val_r2'? known: val_loss, val_r2, loss, r2, ";
  EXPECT_THAT(error_of([&] { (void)bind_run("alpha", problem); }), HasSubstr(advice));
  EXPECT_THAT(error_of([&] { (void)run_alpha(problem, kLargest); }), HasSubstr(advice));
  EXPECT_NO_THROW((void)bind_run("quick", problem));
  for (const char* known : {"-loss", "val_r2__last", "-n_parameters", "-training_time__min"}) {
    problem.objective(known);
    EXPECT_FALSE(run_alpha(problem, kLargest).failed()) << known;
  }
  for (const char* callback : {"EarlyStopping", "ReduceLROnPlateau"}) {
    Value parameters = kLargest;
    parameters.as_dict()["callbacks"] = Value{{callback, Value{{"monitor", "val_r3"}}}};
    int epochs = 0;
    problem.objective([&](const History&) { return ++epochs; });
    EXPECT_THAT(error_of([&] { (void)run_alpha(problem, parameters); }),
                HasSubstr(std::string(callback) + " watches what the training does not measure"));
    EXPECT_EQ(epochs, 0);
  }
}

TEST(Alpha, SameSeedSameBits) {
  const NaProblem problem = small_problem();
  const double first = run_alpha(problem, kLargest).objectives[0];
  (void)run_alpha(problem, Value{{"arch_seq", Value::List{3}}});
  EXPECT_EQ(run_alpha(problem, kLargest).objectives[0], first);
  Value other = kLargest;
  other.as_dict()["seed"] = 5;
  EXPECT_NE(run_alpha(problem, other).objectives[0], first);
}

TEST(Alpha, ThreadsDoNotChangeEachOther) {
  const NaProblem problem = small_problem(20);
  std::vector<double> in_turn(4), at_once(4);
  const auto evaluate = [&](std::size_t i) {
    return run_alpha(problem, Value{{"arch_seq", Value::List{Value(5 + static_cast<int>(i))}}})
        .objectives[0];
  };
  for (std::size_t i = 0; i < 4; ++i) in_turn[i] = evaluate(i);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { at_once[i] = evaluate(i); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(at_once, in_turn);
}

TEST(Alpha, WeighsClasses) {
  NaProblem problem = small_problem(10);
  problem
      .load_data([] {
        Samples samples = plane(200);
        samples.targets[0] = (samples.targets[0] > 1).to(torch::kInt64);
        return DataSplit{samples, samples};
      })
      .loss("cross_entropy")
      .metrics({"acc"})
      .objective("val_acc");
  EXPECT_GT(run_alpha(problem, kLargest).objectives[0], 0.9);
  // Only one class counts: everything is said to be it.
  problem.class_weights({0.0, 1.0});
  const double share = problem.data().train.targets[0].to(torch::kFloat64).mean().item<double>();
  EXPECT_NEAR(run_alpha(problem, kLargest).objectives[0], share, 1e-9);
  problem.class_weights({1, 1, 1});
  EXPECT_THAT(error_of([&] { (void)run_alpha(problem, kLargest); }),
              HasSubstr("3 class weights for 2 classes"));
}

TEST(Alpha, HasTheHistoryOfAPlainLoop) {
  // The same by hand: no blocks, no flat parameters, no schedules.
  NaProblem problem = small_problem(3);
  problem.hyperparameters({{"optimizer", "sgd"}, {"momentum", 0.9}});
  TempDir dir;
  const double objective = run_alpha(problem, kLargest, dir.path()).objectives[0];
  torch::manual_seed(problem.seed());
  const auto model = problem.model(std::vector<std::int64_t>{9});
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  const DataSplit& data = problem.data();
  SamplerOptions order;
  order.seed = problem.seed();
  order.rank = 0;
  order.ranks = 1;
  DistributedSampler sampler(240, order);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    sampler.set_epoch(epoch);
    while (auto samples = sampler.next(24)) {
      const Batch batch = Dataset{data.train.inputs[0], data.train.targets[0]}.batch(*samples);
      sgd.zero_grad();
      torch::mse_loss(model->forward({batch.inputs})[0], batch.targets).backward();
      sgd.step();
    }
  }
  torch::NoGradGuard no_grad;
  const torch::Tensor y = data.validation.targets[0].to(torch::kFloat64);
  const torch::Tensor p = model->forward(data.validation.inputs)[0].to(torch::kFloat64);
  const double by_hand =
      1 - ((y - p).square().sum() / (y - y.mean()).square().sum()).item<double>();
  EXPECT_NEAR(objective, by_hand, 1e-6);
}

TEST(Alpha, RecordsTheObjectiveOfEachEpochAndStops) {
  const NaProblem problem = small_problem(6);
  RecordingSession session;
  hps::RunningJob job(1, kLargest, {}, {}, &session);
  const double objective = alpha(problem, job).objectives[0];
  ASSERT_EQ(session.reports.size(), 6U);
  EXPECT_EQ(session.reports[0].first, 1);
  EXPECT_EQ(session.reports[5].first, 6);
  EXPECT_EQ(session.reports[5].second, objective);

  RecordingSession short_one(2);
  hps::RunningJob stopped(2, kLargest, {}, {}, &short_one);
  const hps::RunResult result = alpha(problem, stopped);
  EXPECT_EQ(short_one.reports.size(), 2U);
  EXPECT_EQ(result.objectives[0], short_one.reports[1].second) << "what there is, is the answer";
  EXPECT_EQ(result.metadata.at("ended_by"), Value("stopped"));
  EXPECT_EQ(result.metadata.at("epochs"), Value(2));
}

TEST(Alpha, StopsEarly) {
  NaProblem problem = small_problem(50);
  // Nothing is learned, so nothing becomes better after the first epoch.
  problem.hyperparameters({{"learning_rate", 0.0}, {"patience_EarlyStopping", 3}});
  const hps::RunResult result = run_alpha(problem, kLargest);
  EXPECT_EQ(result.metadata.at("epochs"), Value(4));
  EXPECT_EQ(result.metadata.at("ended_by"), Value("early_stopping"));
}

Json history_of(const std::filesystem::path& dir, int id = 0) {
  return parse_json(read_file(dir / "save/history" / (std::to_string(id) + ".json")), "history");
}

TEST(Alpha, LowersTheRateOnAPlateau) {
  NaProblem problem = small_problem(5);
  problem.hyperparameters(
      {{"optimizer", "sgd"},
       {"learning_rate", 0.5},
       {"callbacks", search::Spec{{"ReduceLROnPlateau", search::Spec{{"patience", 1},
                                                                     {"factor", 0.1},
                                                                     {"min_delta", 1e9},
                                                                     {"min_lr", 0.004}}}}}});
  TempDir dir;
  (void)run_alpha(problem, kLargest, dir.path());
  const auto rates = history_of(dir.path())["learning_rate"].get<std::vector<double>>();
  const std::vector<double> by_hand{0.5, 0.5, 0.05, 0.005, 0.004};
  ASSERT_EQ(rates.size(), by_hand.size());
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], by_hand[i], 1e-12) << i;
}

TEST(Alpha, EndsAtTheTimeLimitWithWhatThereIs) {
  NaProblem problem = small_problem(1'000'000);
  problem.hyperparameters({{"time_limit", 0.3}});
  const hps::RunResult result = run_alpha(problem, kLargest);
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_EQ(result.metadata.at("ended_by"), Value("time_limit"));
  EXPECT_GT(result.objectives[0], 0.5);
  EXPECT_LT(result.metadata.at("training_time").as_number(), 5);
}

TEST(Alpha, NotANumberIsAFailure) {
  NaProblem problem = small_problem();
  problem.hyperparameters({{"optimizer", "sgd"}, {"learning_rate", 1e30}});
  const hps::RunResult result = run_alpha(problem, kLargest);
  EXPECT_EQ(result.failure, "F_nan");
  EXPECT_EQ(result.metadata.at("ended_by"), Value("not_a_number"));
  NaProblem odd = small_problem();
  odd.objective([](const History&) { return std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_EQ(run_alpha(odd, kLargest).failure, "F_nan");
}

TEST(Alpha, AnArchitectureThatCannotBeIsAFailure) {
  const std::string failure =
      run_alpha(small_problem(), Value{{"arch_seq", Value::List{10}}}).failure;
  EXPECT_THAT(failure, testing::StartsWith("F_build: "));
  EXPECT_THAT(run_alpha(small_problem(), Value{{"arch_seq", Value::List{1, 2}}}).failure,
              testing::StartsWith("F_build: "));
}

TEST(Alpha, ObjectivesAreTextsOrFunctions) {
  NaProblem problem = small_problem(3);
  problem.objective([](const History& history) {
    EXPECT_EQ(history.at("val_r2").size(), 3U);
    EXPECT_EQ(history.at("n_parameters").at(0), 41);
    EXPECT_GT(history.at("training_time").at(0), 0);
    EXPECT_GE(history.at("predict_time").at(0), 0);
    return 7.5;
  });
  EXPECT_EQ(run_alpha(problem, kLargest).objectives[0], 7.5);
  TempDir dir;
  problem.objective("-val_loss__min");
  const double objective = run_alpha(problem, kLargest, dir.path()).objectives[0];
  const auto losses = history_of(dir.path())["val_loss"].get<std::vector<double>>();
  EXPECT_EQ(objective, -*std::min_element(losses.begin(), losses.end()));
  problem.objective("val_r2__last");
  (void)run_alpha(problem, kLargest, dir.path());
  EXPECT_EQ(history_of(dir.path())["val_r2"].size(), 1U) << "validated in the last epoch only";
  EXPECT_EQ(history_of(dir.path())["r2"].size(), 3U);
  problem.objective("val_r3");
  EXPECT_THAT(error_of([&] { (void)run_alpha(problem, kLargest); }), HasSubstr("val_r2"));
}

TEST(Alpha, RepeatKeepsTheBest) {
  NaProblem problem = small_problem(2);
  std::vector<double> each;
  for (int i = 0; i < 3; ++i) {
    NaProblem seeded = problem;
    seeded.seed(problem.seed() + static_cast<std::uint64_t>(i));
    each.push_back(run_alpha(seeded, kLargest).objectives[0]);
  }
  problem.hyperparameters({{"repeat", 3}});
  EXPECT_EQ(run_alpha(problem, kLargest).objectives[0],
            *std::max_element(each.begin(), each.end()));
}

TEST(Alpha, LeavesFilesThatCanBeUsed) {
  const NaProblem problem = small_problem(5);
  TempDir dir;
  Value parameters = kLargest;
  parameters.as_dict()["batch_size"] = 12;
  const double objective = run_alpha(problem, parameters, dir.path(), 17).objectives[0];
  const Json config = parse_json(read_file(dir.path() / "save/config/17.json"), "config");
  EXPECT_EQ(config["arch_seq"], Json::array({9}));
  EXPECT_EQ(config["hyperparameters"]["batch_size"], 12);
  EXPECT_EQ(config["hyperparameters"]["num_epochs"], 5);
  EXPECT_EQ(config["objective"], "val_r2");
  const Json history = history_of(dir.path(), 17);
  EXPECT_EQ(history["val_r2"].size(), 5U);
  EXPECT_EQ(history["loss"].size(), 5U);
  const auto scores = history["val_r2"].get<std::vector<double>>();
  EXPECT_EQ(scores.back(), objective);

  const auto model = load_model(problem, dir.path(), 17);
  torch::NoGradGuard no_grad;
  const torch::Tensor y = problem.data().validation.targets[0].to(torch::kFloat64);
  const torch::Tensor p = model->forward(problem.data().validation.inputs)[0].to(torch::kFloat64);
  const double r2 = 1 - ((y - p).square().sum() / (y - y.mean()).square().sum()).item<double>();
  EXPECT_NEAR(r2, *std::max_element(scores.begin(), scores.end()), 1e-9);
  EXPECT_LT(std::filesystem::file_size(dir.path() / "save/model/17.pt"), 20'000U);

  write_file_atomically(dir.path() / "save/model/17.pt", "cut off");
  EXPECT_THAT(error_of([&] { (void)load_model(problem, dir.path(), 17); }), HasSubstr("17.pt"));
  EXPECT_THROW((void)load_model(problem, dir.path(), 18), Error);
}

TEST(Alpha, TakesSeveralInputsAndOutputsWithWeights) {
  NaProblem problem = small_problem(30);
  problem
      .load_data([] {
        const auto make = [](std::int64_t samples, std::int64_t offset) {
          const Samples flat = plane(samples, offset);
          return Samples{flat.inputs[0].split(1, 1), {flat.targets[0], -3 * flat.targets[0]}};
        };
        return DataSplit{make(240, 0), make(60, 5)};
      })
      .loss({{"output_0", "mse"}, {"output_1", "mae"}}, {{"output_0", 0.5}, {"output_1", 2.0}})
      .output_metrics({{"output_0", {"r2"}}, {"output_1", {"r2", "mse"}}})
      .objective("val_output_1_r2");
  TempDir dir;
  // One layer for each input, where the space has it so.
  Value::List arch_seq(problem.architectures()->length(), Value(9));
  const hps::RunResult result =
      run_alpha(problem, Value{{"arch_seq", std::move(arch_seq)}}, dir.path());
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_GT(result.objectives[0], 0.95);
  const Json history = history_of(dir.path());
  for (const char* name : {"output_0_r2", "output_1_r2", "output_1_mse", "val_output_0_loss"})
    EXPECT_EQ(history[name].size(), 30U) << name;
  EXPECT_FALSE(history.contains("output_0_mse"));
  EXPECT_NEAR(history["val_loss"][3].get<double>(),
              0.5 * history["val_output_0_loss"][3].get<double>() +
                  2 * history["val_output_1_loss"][3].get<double>(),
              1e-9);
}

TEST(Alpha, AugmentsTrainingSamplesOnly) {
  NaProblem problem = small_problem(2);
  std::int64_t seen = 0;
  problem.augment([&seen](Samples samples, torch::Generator& random) {
    seen += samples.size();
    samples.inputs[0] = samples.inputs[0] + torch::randn(samples.inputs[0].sizes(), random) * 0.01;
    return samples;
  });
  const double first = run_alpha(problem, kLargest).objectives[0];
  EXPECT_EQ(seen, 2 * 240);
  EXPECT_EQ(run_alpha(problem, kLargest).objectives[0], first) << "from the seed alone";
  EXPECT_NE(run_alpha(small_problem(2), kLargest).objectives[0], first);
}

TEST(Alpha, TakesAnyLossWithRealTargets) {
  for (const char* loss : {"mse", "mae", "huber", "log_cosh"}) {
    NaProblem problem = small_problem(30);
    problem.loss(loss);
    EXPECT_GT(run_alpha(problem, kLargest).objectives[0], 0.9) << loss;
  }
  NaProblem own = small_problem(30);
  own.loss([](const torch::Tensor& outputs, const torch::Tensor& targets) {
    return (outputs - targets).pow(4).mean();
  });
  EXPECT_GT(run_alpha(own, kLargest).objectives[0], 0.9);
}

TEST(PostTraining, TrainsLongerAndRepeats) {
  NaProblem problem = small_problem(1);
  problem.post_training({.num_epochs = 30, .metrics = {}, .callbacks = {}, .repeat = 2});
  TempDir dir;
  const double short_run = run_alpha(problem, kLargest).objectives[0];
  Value worse{{"arch_seq", Value::List{0}}, {"num_epochs", 1}};
  const auto trained = post_train(problem, {kLargest, worse}, "alpha", dir.path());
  ASSERT_EQ(trained.size(), 2U);
  ASSERT_EQ(trained[0].objectives.size(), 2U);
  EXPECT_GT(trained[0].best, short_run);
  EXPECT_NE(trained[0].objectives[0], trained[0].objectives[1]) << "other seeds";
  EXPECT_NEAR(trained[0].mean, (trained[0].objectives[0] + trained[0].objectives[1]) / 2, 1e-12);
  EXPECT_EQ(trained[1].metadata.at("epochs"), Value(30));
  const Json results = parse_json(read_file(dir.path() / "post_training/results.json"), "results");
  EXPECT_EQ(results["results"].size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "post_training/save/model/3.pt"));
}

TEST(RunFunctions, AreFoundByTheNamesOfTheReference) {
  EXPECT_EQ(na_run_function("alpha").name, "alpha");
  EXPECT_EQ(na_run_function("deephyper.nas.run.horovod.run").name, "distributed");
  EXPECT_EQ(na_run_function("deephyper.search.nas.model.run.alpha.run").name, "alpha");
  EXPECT_EQ(na_run_function("deephyper.nas.run.tf_distributed.run").name, "tf_distributed");
  EXPECT_EQ(na_run_function("deephyper.nas.run.quick.run").name, "quick");
  EXPECT_THAT(error_of([] { (void)na_run_function("aplha"); }),
              testing::AllOf(HasSubstr("did you mean 'alpha'"), HasSubstr("quick")));
}

TEST(RunFunctions, QuickSums) {
  NaProblem problem = small_problem();
  problem.search_space("simple_deep", {{"num_layers", 3}});
  hps::RunningJob job(1, Value{{"arch_seq", Value::List{1, 10, 5}}}, {});
  EXPECT_EQ(bind_run("quick", problem)(job).objectives[0], 16);
  hps::RunningJob bad(2, Value{{"arch_seq", Value::List{1, 11, 5}}}, {});
  EXPECT_THROW((void)quick(problem, bad), Error);
}

TEST(Benchmarks, LinearRegIsLearnedByItsLargestLayer) {
  const NaProblem problem = load_na_problem("benchmark.nas.linear_reg").problem;
  const hps::RunResult result = run_alpha(problem, kLargest);
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_GT(result.objectives[0], 0.95);
}

}  // namespace
}  // namespace kolo::nas

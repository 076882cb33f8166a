#include "kolo/torch/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "kolo/error.h"
#include "kolo/torch/callbacks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

torch::nn::Sequential make_net() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(64, 32), torch::nn::ReLU(),
                               torch::nn::Dropout(0.1), torch::nn::Linear(32, 10));
}

/// As ModuleHolder gives it.
struct Bench {
  torch::nn::Sequential net = make_net();
  torch::optim::SGD sgd{net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)};
  Trainer trainer;
  explicit Bench(std::uint64_t epochs)
      : trainer(net.ptr(), [this](const torch::Tensor& x) { return net->forward(x); },
                cross_entropy, sgd, {.epochs = epochs, .batch_per_rank = 32}) {
    trainer.metric("accuracy", accuracy);
  }
};

struct Recorder : Callback {
  explicit Recorder(std::vector<std::string>& the_calls) : calls(the_calls) {}
  void on_train_begin(Trainer&) override { calls.emplace_back("train_begin"); }
  void on_epoch_begin(Trainer&) override { calls.emplace_back("epoch_begin"); }
  void on_step(Trainer& trainer) override {
    if (trainer.step_of_epoch() == 0) calls.emplace_back("step");
  }
  void on_step_end(Trainer& trainer, double) override {
    if (trainer.step_of_epoch() == trainer.steps_per_epoch()) calls.emplace_back("last_step_end");
  }
  void on_epoch_end(Trainer&, Metrics& metrics) override {
    metrics["mine"] = 1;
    calls.emplace_back("epoch_end");
  }
  void on_train_end(Trainer&) override { calls.emplace_back("train_end"); }
  std::vector<std::string>& calls;
};

TEST(Trainer, LearnsAndCallsBack) {
  Bench bench(6);
  std::vector<std::string> calls;
  bench.trainer.add<Recorder>(calls);
  const Dataset train = load_digits(Split::train), test = load_digits(Split::test);
  const auto history = bench.trainer.fit(train, &test);
  ASSERT_EQ(history.size(), 6U);
  EXPECT_GT(history.back().at("val_accuracy"), 0.9);
  EXPECT_LT(history.back().at("loss"), history.front().at("loss"));
  EXPECT_EQ(history.back().at("mine"), 1);
  EXPECT_EQ(bench.trainer.steps(), 6 * 45U);
  calls.resize(6);
  EXPECT_THAT(calls, ElementsAre("train_begin", "epoch_begin", "step", "last_step_end", "epoch_end",
                                 "epoch_begin"));
  // Validation is over all samples, whatever the batches.
  torch::NoGradGuard no_grad;
  bench.net->eval();
  EXPECT_NEAR(history.back().at("val_accuracy"),
              accuracy(bench.net->forward(test.inputs), test.targets), 1e-12);
}

TEST(Trainer, WritesLogs) {
  TempDir dir;
  Bench bench(3);
  std::FILE* out = std::tmpfile();
  std::FILE* full = std::fopen("/dev/full", "w");  // what cannot be written ends nothing
  std::setvbuf(full, nullptr, _IONBF, 0);
  bench.trainer.add<RateCallback>(schedule::cosine(0.05, 3))
      .add<CsvLogger>(dir.path() / "log.csv")
      .add<TensorBoardLogger>(dir.path() / "events")
      .add<ProgressBar>(out)
      .add<ProgressBar>(full);
  const auto history = bench.trainer.fit(load_digits(Split::train).head(320));
  const CsvTable table = read_csv(dir.path() / "log.csv", {.separator = ',', .header = true});
  EXPECT_THAT(table.names, ElementsAre("epoch", "accuracy", "loss", "rate"));
  ASSERT_EQ(table.values.size(0), 3);
  EXPECT_NEAR(table.values[2][2].item<double>(), history[2].at("loss"), 1e-12);
  EXPECT_EQ(table.values[0][0].item<double>(), 1);  // as the progress bar counts
  EXPECT_LT(history[2].at("rate"), history[0].at("rate"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path() / "events")) {
    ++files;
    EXPECT_THAT(read_file(entry.path()), HasSubstr("accuracy"));
  }
  EXPECT_EQ(files, 1);
  std::fclose(full);
  std::rewind(out);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_THAT(text, HasSubstr("epoch 3/3"));
  EXPECT_THAT(text, HasSubstr("loss "));
}

struct Worse : Callback {
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override {
    const double values[] = {1.0, 0.5, 0.6, 0.55, 0.4, 0.3};
    metrics["watched"] = values[trainer.epoch()];
  }
};

TEST(Trainer, StopsEarly) {
  Bench bench(6);
  bench.trainer.add<Worse>().add<EarlyStop>(
      EarlyStop::Options{.monitor = "watched", .patience = 2});
  EXPECT_EQ(bench.trainer.fit(load_digits(Split::train).head(64)).size(), 4U);
  EXPECT_TRUE(bench.trainer.stopped());

  Bench other(1);
  other.trainer.add<EarlyStop>(EarlyStop::Options{.monitor = "typo"});
  try {
    other.trainer.fit(load_digits(Split::train).head(64));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no metric 'typo'; known: accuracy, loss"));
  }
}

TEST(Trainer, ResumesWithTheSameBits) {
  TempDir dir;
  const Dataset train = load_digits(Split::train).head(640);
  auto run = [&](std::uint64_t epochs, const std::filesystem::path& directory) {
    Bench bench(epochs);
    CheckpointCallback::Options options;
    options.files.directory = directory;
    options.monitor = "loss";
    // The schedule is that of the whole run, also when it is ended before.
    bench.trainer.add<RateCallback>(schedule::cosine(0.05, 5))
        .add<CheckpointCallback>(options)
        .add<CsvLogger>(directory / "log.csv");
    auto history = bench.trainer.fit(train);
    std::vector<torch::Tensor> weights;
    for (const auto& tensor : bench.net->parameters()) weights.push_back(tensor.detach().clone());
    return std::make_pair(history.size(), weights);
  };
  const auto whole = run(5, dir.path() / "whole");
  EXPECT_EQ(run(2, dir.path() / "parts").first, 2U);
  const auto rest = run(5, dir.path() / "parts");
  EXPECT_EQ(rest.first, 3U);
  for (std::size_t i = 0; i < whole.second.size(); ++i)
    EXPECT_TRUE(whole.second[i].equal(rest.second[i]));
  EXPECT_EQ(read_file(dir.path() / "parts/log.csv"), read_file(dir.path() / "whole/log.csv"));
}

}  // namespace
}  // namespace kolo

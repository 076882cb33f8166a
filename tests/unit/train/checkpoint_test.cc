#include "kolo/torch/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "base/files.h"
#include "kolo/error.h"
#include "kolo/torch/data.h"
#include "support/power_failures.h"
#include "support/thread_ranks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void flip_byte(const std::filesystem::path& path, std::size_t place) {
  std::string bytes = read_file(path);
  bytes.at(place) = static_cast<char>(bytes.at(place) ^ 0x10);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    (void)CheckpointFiles::read(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corruption);
    return error.message();
  }
  return "";
}

class Checkpoints : public testing::Test {
 protected:
  CheckpointOptions options(int keep_last = 3) {
    CheckpointOptions all;
    all.directory = dir_.path() / "run";
    all.keep_last = keep_last;
    return all;
  }
  std::vector<std::uint64_t> steps(const CheckpointFiles& files) {
    std::vector<std::uint64_t> all;
    for (const auto& info : files.list()) all.push_back(info.step);
    return all;
  }
  TempDir dir_;
};

TEST_F(Checkpoints, OfEarlierVersionsAreRead) {
  const std::filesystem::path formats =
      std::filesystem::path(KOLO_SOURCE_DIR) / "tests/data/formats";
  for (const auto& version : std::filesystem::directory_iterator(formats)) {
    if (!version.is_directory()) continue;
    CheckpointOptions all;
    all.directory = version.path();
    const auto latest = CheckpointFiles(all).read_latest();
    ASSERT_TRUE(latest) << version.path();
    EXPECT_EQ(latest->info.step, 42U);
    EXPECT_EQ(latest->info.metric, 0.25);
    const CheckpointParts parts{{"model", std::string("\0\1\2weights", 10)},
                                {"schedule", "{\"epoch\": 3}"}};
    EXPECT_EQ(latest->parts, parts);
  }
}

TEST_F(Checkpoints, ComeBackAsTheyWere) {
  CheckpointFiles files(options());
  EXPECT_FALSE(files.read_latest());
  const CheckpointParts parts{{"model", std::string("\0\1\2", 3)}, {"empty", ""}};
  files.write(7, parts, 0.5);
  auto latest = files.read_latest();
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->info.step, 7U);
  EXPECT_EQ(latest->info.metric, 0.5);
  EXPECT_EQ(latest->parts, parts);
}

TEST_F(Checkpoints, KeepTheLastAndTheBest) {
  CheckpointFiles files(options(2));
  const double metrics[] = {0.9, 0.2, 0.5, 0.4, 0.6};
  for (std::uint64_t step = 1; step <= 5; ++step)
    files.write(step, {{"a", "b"}}, metrics[step - 1]);
  EXPECT_THAT(steps(files), ElementsAre(2, 4, 5));
  EXPECT_EQ(files.read_best()->info.step, 2U);
  EXPECT_EQ(files.read_latest()->info.step, 5U);
  files.write(6, {{"a", "b"}}, 0.1);  // better: the old best may go
  EXPECT_THAT(steps(files), ElementsAre(5, 6));

  CheckpointOptions diverging = options(1);
  diverging.directory /= "diverging";
  CheckpointFiles diverged(diverging);
  const double losses[] = {std::nan(""), 0.5, 0.7, std::nan("")};
  for (std::uint64_t step = 1; step <= 4; ++step) diverged.write(step, {}, losses[step - 1]);
  EXPECT_THAT(steps(diverged), ElementsAre(2, 4));
  EXPECT_EQ(diverged.read_best()->info.step, 2U);

  CheckpointOptions upward = options(1);
  upward.directory /= "upward";
  upward.lower_is_better = false;
  CheckpointFiles accuracy(upward);
  for (std::uint64_t step = 1; step <= 3; ++step)
    accuracy.write(step, {}, 1.0 / static_cast<double>(step));
  EXPECT_THAT(steps(accuracy), ElementsAre(1, 3));
}

// A run that goes on from before a damaged one, or begins where another was, writes lower steps.
TEST_F(Checkpoints, WhatWasWrittenLastIsKeptBesideHigherSteps) {
  for (const int kept : {1, 2}) {
    CheckpointOptions all = options(kept);
    all.directory /= std::to_string(kept);
    CheckpointFiles files(all);
    for (std::uint64_t step : {10, 20, 30}) files.write(step, {{"a", "b"}});
    std::ofstream(files.list().back().path, std::ios::trunc) << "damaged";
    for (std::uint64_t step : {21, 22}) {
      files.write(step, {{"a", "c"}});
      EXPECT_EQ(files.read_latest()->info.step, step);
    }
    EXPECT_THAT(files.list().size(), static_cast<std::size_t>(kept) + 1);
    files.write(31, {{"a", "d"}});  // later than all: the damaged one counts as any other
    EXPECT_THAT(files.list().size(), static_cast<std::size_t>(kept));
    EXPECT_EQ(files.read_latest()->info.step, 31U);
  }
}

TEST_F(Checkpoints, PartsThatKilledWritersHaveLeftAreRemoved) {
  CheckpointFiles files(options());
  const auto part = options().directory / "step-000000000001.kolo.a1B2c3";
  std::ofstream(part) << "a part";
  files.write(2, {{"a", "b"}});
  EXPECT_TRUE(std::filesystem::exists(part));  // somebody may be at it
  std::filesystem::last_write_time(part,
                                   std::filesystem::last_write_time(part) - std::chrono::hours(2));
  files.write(3, {{"a", "b"}});
  EXPECT_FALSE(std::filesystem::exists(part));
  EXPECT_THAT(steps(files), ElementsAre(2, 3));
}

TEST_F(Checkpoints, APowerFailureTakesNeitherTheLastNorTheBest) {
  const double metrics[] = {0.9, 0.2, 0.5, 0.4};
  const auto in = [this](const std::filesystem::path& folder) {
    CheckpointOptions all = options(1);
    all.directory = folder / "run";
    return CheckpointFiles(all);
  };
  test::fail_everywhere(
      [&](const std::filesystem::path& folder, auto done) {
        CheckpointFiles files = in(folder);
        for (std::uint64_t step = 1; step <= 4; ++step) {
          files.write(step, {{"model", std::string(3000, 'm')}}, metrics[step - 1]);
          done();
        }
      },
      [&](const std::filesystem::path& folder, int count) {
        const CheckpointFiles files = in(folder);
        const auto latest = files.read_latest(), best = files.read_best();
        EXPECT_TRUE(latest ? static_cast<int>(latest->info.step) >= count : count == 0);
        EXPECT_TRUE(count < 2 || (best && best->info.step == 2));
      });
}

TEST_F(Checkpoints, DamagedOnesAreNamedAndTheOneBeforeIsUsed) {
  CheckpointFiles files(options());
  for (std::uint64_t step : {10, 20, 30})
    files.write(step, {{"model", std::string(1000, 'm')}, {"optimizer", "state"}});
  const auto paths = files.list();
  flip_byte(paths[2].path, read_file(paths[2].path).size() - 500);
  std::string short_file = read_file(paths[1].path);
  std::ofstream(paths[1].path, std::ios::binary) << short_file.substr(0, 300);

  auto latest = files.read_latest();
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->info.step, 10U);
  ASSERT_EQ(latest->damaged.size(), 2U);
  EXPECT_THAT(latest->damaged[0], HasSubstr("step-000000000030.kolo: damaged: part 'model'"));
  EXPECT_THAT(latest->damaged[1], HasSubstr("step-000000000020.kolo"));
  flip_byte(paths[0].path, 60);
  EXPECT_THROW((void)files.read_latest(), Error);
}

TEST_F(Checkpoints, EveryByteIsGuarded) {
  CheckpointFiles files(options());
  const auto info = files.write(1, {{"model", "0123456789"}, {"b", "xyz"}}, 1.5);
  const std::string whole = read_file(info.path);
  for (std::size_t place = 0; place < whole.size(); ++place) {
    flip_byte(info.path, place);
    EXPECT_ANY_THROW((void)CheckpointFiles::read(info.path)) << "byte " << place;
    std::ofstream(info.path, std::ios::binary) << whole.substr(0, place);
    EXPECT_FALSE(error_of(info.path).empty()) << "cut at " << place;
    std::ofstream(info.path, std::ios::binary) << whole;
  }
  std::ofstream(info.path, std::ios::binary) << whole << "more";
  EXPECT_FALSE(error_of(info.path).empty());
}

struct OneRun {
  torch::nn::Sequential net{torch::nn::Linear(64, 24), torch::nn::ReLU(), torch::nn::Dropout(0.3),
                            torch::nn::BatchNorm1d(24), torch::nn::Linear(24, 10)};
  torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(0.01)};
  Dataset data = load_digits(Split::train);
  SamplerOptions how = [] {
    SamplerOptions options;
    options.rank = 0;
    options.ranks = 1;
    return options;
  }();
  DistributedSampler sampler{data.size(), how};
  RateScheduler rate{adam, schedule::cosine(0.01, 4), {.steps_per_epoch = 45}};
  CheckpointParts user;

  TrainingState state() {
    TrainingState all;
    all.module = net.ptr().get();
    all.optimizer = &adam;
    all.scheduler = &rate;
    all.sampler = &sampler;
    all.user = &user;
    return all;
  }
  double step() {
    auto samples = sampler.next(32);
    if (!samples) {
      sampler.set_epoch(sampler.epoch() + 1);
      samples = sampler.next(32);
    }
    const Batch batch = data.batch(*samples);
    rate.step();
    adam.zero_grad();
    torch::Tensor loss =
        torch::nn::functional::cross_entropy(net->forward(batch.inputs), batch.targets);
    loss.backward();
    adam.step();
    return loss.item<double>();
  }
};

TEST_F(Checkpoints, AResumedRunHasTheSameBits) {
  torch::manual_seed(11);
  OneRun run;
  for (int i = 0; i < 60; ++i) run.step();  // into the second epoch
  run.user["note"] = "hello";
  Checkpointer checkpoints(options());
  checkpoints.save(60, run.state());
  std::vector<double> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(run.step());

  torch::manual_seed(99);
  OneRun other;
  auto resumed = checkpoints.resume(other.state());
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->step, 60U);
  EXPECT_EQ(other.user["note"], "hello");
  EXPECT_EQ(other.sampler.epoch(), 1U);
  std::vector<double> actual;
  for (int i = 0; i < 20; ++i) actual.push_back(other.step());
  EXPECT_EQ(actual, expected);
  auto a = run.net->parameters(), b = other.net->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i]));
}

TEST_F(Checkpoints, MustFitTheNetwork) {
  OneRun run;
  Checkpointer checkpoints(options());
  checkpoints.save(1, run.state());
  torch::nn::Linear other(3, 3);
  TrainingState state;
  state.module = other.ptr().get();
  try {
    (void)checkpoints.resume(state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST_F(Checkpoints, MustFitTheOptimizer) {
  OneRun run;
  run.step();
  Checkpointer checkpoints(options());
  checkpoints.save(1, run.state());
  const auto refusal = [&](torch::optim::Optimizer& other) -> std::string {
    TrainingState state;
    state.optimizer = &other;
    try {
      (void)checkpoints.resume(state);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  torch::optim::SGD sgd(run.net->parameters(), torch::optim::SGDOptions(0.5).momentum(0.9));
  EXPECT_THAT(refusal(sgd), HasSubstr("saved by an optimizer of Adam, and this program trains with "
                                      "SGD"));
  EXPECT_EQ(static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(), 0.5);
  torch::optim::AdamW adamw(run.net->parameters());
  EXPECT_THAT(refusal(adamw), HasSubstr("trains with AdamW"));
}

TEST_F(Checkpoints, RankZeroWritesForAll) {
  test::ThreadRanks job({.host_of_rank = {0, 0, 0}});
  job.run([&](Communicator& world) {
    Engine engine(world);
    CollectiveOptions how;
    how.engine = &engine;
    torch::Tensor w = torch::full({3}, engine.rank(), torch::kFloat64).requires_grad_();
    torch::optim::SGD sgd({w}, torch::optim::SGDOptions(0.1 * (engine.rank() + 1)));
    TrainingState state;
    state.optimizer = &sgd;
    state.random = false;
    Checkpointer checkpoints(options(), how);
    if (checkpoints.resume(state)) throw std::runtime_error("there is nothing to resume");
    checkpoints.save(5, state);
    if (checkpoints.resume(state)->step != 5) throw std::runtime_error("step");
    if (sgd.param_groups()[0].options().get_lr() != 0.1) throw std::runtime_error("rate of rank 0");

    // A directory that cannot be made is an error on every rank.
    CheckpointOptions bad;
    bad.directory = "/proc/nowhere/run";
    try {
      Checkpointer never(bad, how);
      throw std::runtime_error("no error");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
    }
    // And so is one that is gone, though only rank 0 looks.
    world.barrier();
    if (engine.rank() == 0) std::filesystem::remove_all(options().directory);
    try {
      (void)checkpoints.resume(state);
      throw std::runtime_error("no error");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
      EXPECT_THAT(error.message(), HasSubstr("cannot look into"));
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace kolo

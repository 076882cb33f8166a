// Whole runs on the handwritten digits: forked ranks, one of which is killed.
#include <csignal>
#include <cstring>

#include "base/files.h"
#include "kolo/error.h"
#include "kolo/torch/checkpoint.h"
#include "kolo/torch/data.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/noise_scale.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"
#include "kolo/torch/state.h"
#include "multiproc/train/toy.h"

namespace kolo::test {
namespace {

struct Plan {
  std::size_t global_batch = 24;
  double rate = 0.05;
  torch::ScalarType type = torch::kFloat64;
  double dropout = 0;
  DistributedOptimizerOptions distributed{};
};

/// One rank of a run.
class DigitsRun {
 public:
  DigitsRun(Engine& engine, const Plan& plan)
      : engine_(engine),
        plan_(plan),
        how_([&] {
          CollectiveOptions how;
          how.engine = &engine;
          return how;
        }()),
        net_(make_net(plan)),
        sgd_(net_->parameters(), torch::optim::SGDOptions(plan.rate).momentum(0.9)),
        optimizer_(sgd_, net_->named_parameters(),
                   [&] {
                     auto options = plan.distributed;
                     options.engine = &engine;
                     return options;
                   }()),
        data_(load_digits(Split::train)),
        sampler_(data_.size(),
                 [&] {
                   SamplerOptions options;
                   options.rank = engine.rank();
                   options.ranks = engine.size();
                   options.tail = Tail::drop;
                   options.drop_partial_batch = true;
                   return options;
                 }()),
        rate_(sgd_, schedule::cosine(plan.rate, 8), {.steps_per_epoch = 59}) {
    broadcast_parameters(*net_, 0, how_);
  }

  /// The loss over the global batch.
  double step() {
    const std::size_t mine = plan_.global_batch / static_cast<std::size_t>(engine_.size());
    auto samples = sampler_.next(mine);
    if (!samples) {
      sampler_.set_epoch(sampler_.epoch() + 1);
      samples = sampler_.next(mine);
    }
    const Batch batch = data_.batch(*samples);
    optimizer_.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(
        net_->forward(batch.inputs.to(plan_.type)), batch.targets);
    loss.backward();
    rate_.step();
    optimizer_.step();
    return average_metrics({{"loss", loss.item<double>()}}, 1, how_).at("loss");
  }

  double test_accuracy() {
    torch::NoGradGuard no_grad;
    net_->eval();
    const Dataset test = load_digits(Split::test);
    torch::Tensor answers = net_->forward(test.inputs.to(plan_.type)).argmax(1);
    net_->train();
    return answers.eq(test.targets).to(torch::kFloat64).mean().item<double>();
  }

  std::string weights() {
    std::string bytes;
    for (const torch::Tensor& tensor : net_->parameters())
      bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
    return bytes;
  }

  TrainingState state() {
    TrainingState all;
    all.module = net_.ptr().get();
    all.distributed = &optimizer_;
    all.scheduler = &rate_;
    all.sampler = &sampler_;
    return all;
  }

  DistributedOptimizer& optimizer() { return optimizer_; }
  const CollectiveOptions& how() const { return how_; }

 private:
  static torch::nn::Sequential make_net(const Plan& plan) {
    torch::nn::Sequential net(torch::nn::Linear(64, 48), torch::nn::ReLU(),
                              torch::nn::Dropout(plan.dropout), torch::nn::Linear(48, 10));
    net->to(plan.type);
    return net;
  }

  Engine& engine_;
  Plan plan_;
  CollectiveOptions how_;
  torch::nn::Sequential net_;
  torch::optim::SGD sgd_;
  DistributedOptimizer optimizer_;
  Dataset data_;
  DistributedSampler sampler_;
  RateScheduler rate_;
};

std::string to_bytes(const std::vector<double>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}
std::vector<double> to_numbers(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

/// What rank 0 of so many ranks returned; all must have ended well.
std::string result_of(int count, const std::function<std::string(Engine&, ProcessRank&)>& body) {
  ProcessRanks ranks({.host_of_rank = std::vector<int>(static_cast<std::size_t>(count), 0)},
                     [&](ProcessRank& me) {
                       Context context(me.options(std::chrono::seconds(30)));
                       Engine engine(context);
                       std::string result = body(engine, me);
                       engine.barrier();
                       return result;
                     });
  auto outcomes = ranks.finish();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, "");
  return outcomes.front().result;
}

std::vector<double> losses_of(int count, int steps) {
  return to_numbers(result_of(count, [steps](Engine& engine, ProcessRank&) {
    torch::manual_seed(1);
    DigitsRun run(engine, {});
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(run.step());
    return to_bytes(losses);
  }));
}

TEST(Digits, AnyNumberOfRanksHasTheLossCurveOfOne) {
  constexpr int kSteps = 100;  // into the second epoch
  const std::vector<double> alone = losses_of(1, kSteps);
  ASSERT_EQ(alone.size(), static_cast<std::size_t>(kSteps));
  EXPECT_LT(alone.back(), 0.5 * alone.front());
  for (int count : {2, 3, 4}) {
    const std::vector<double> together = losses_of(count, kSteps);
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(together[i], alone[i], 1e-9) << "step " << i << ", " << count << " ranks";
  }
}

double accuracy_with(Compression compression) {
  return to_numbers(result_of(2, [=](Engine& engine, ProcessRank&) {
    torch::manual_seed(1);
    Plan plan;
    plan.type = torch::kFloat32;
    plan.distributed.compression = compression;
    DigitsRun run(engine, plan);
    for (int i = 0; i < 59 * 8; ++i) run.step();
    return to_bytes({run.test_accuracy()});
  }))[0];
}

TEST(Digits, CompressedGradientsLearnAsWell) {
  const double dense = accuracy_with(Compression::none());
  EXPECT_GT(dense, 0.95);
  EXPECT_GT(accuracy_with(Compression::power_sgd(2)), dense - 0.01);
  EXPECT_GT(accuracy_with(Compression::top_k(0.05)), dense - 0.01);
  EXPECT_GT(accuracy_with(Compression::bf16()), dense - 0.01);
}

constexpr int kSteps = 90, kEvery = 20, kKilledAt = 53;

/// Trains to the end, resuming if it can and saving now and then; `killed`: rank 1 waits for its
/// end.
std::string train_with_checkpoints(Engine& engine, ProcessRank& me,
                                   const DistributedOptimizerOptions& distributed,
                                   const std::filesystem::path& directory, bool killed) {
  torch::manual_seed(5 + static_cast<std::uint64_t>(engine.rank()));
  Plan plan;
  plan.type = torch::kFloat32;
  plan.dropout = 0.2;  // another random mask on each rank
  plan.distributed = distributed;
  DigitsRun run(engine, plan);
  CheckpointOptions options;
  options.directory = directory;
  Checkpointer checkpoints(options, run.how());
  int step = 0;
  if (auto resumed = checkpoints.resume(run.state())) step = static_cast<int>(resumed->step);
  while (step < kSteps) {
    if (killed && step == kKilledAt && engine.rank() == 1) me.wait_to_be_killed("here");
    run.step();
    if (++step % kEvery == 0) checkpoints.save(static_cast<std::uint64_t>(step), run.state());
  }
  return run.weights();
}

void expect_resumed_as_undisturbed(const DistributedOptimizerOptions& distributed) {
  TempDir dir;
  const std::string expected = result_of(2, [&](Engine& engine, ProcessRank& me) {
    return train_with_checkpoints(engine, me, distributed, dir.path() / "undisturbed", false);
  });
  const auto disturbed = dir.path() / "killed";
  {
    ProcessRanks ranks({}, [&](ProcessRank& me) {
      Context context(me.options(std::chrono::seconds(30)));
      Engine engine(context);
      try {
        return train_with_checkpoints(engine, me, distributed, disturbed, true);
      } catch (const Error& error) {
        return std::string(to_string(error.code()));
      }
    });
    ranks.await(1, "here");
    ranks.signal(1, SIGKILL);
    const auto outcomes = ranks.finish();
    EXPECT_EQ(outcomes[0].result, "peer_lost");
    EXPECT_TRUE(outcomes[1].signalled);
  }
  // The newest checkpoint is damaged, too: the one before it is used.
  CheckpointOptions options;
  options.directory = disturbed;
  const auto files = CheckpointFiles(options).list();
  ASSERT_EQ(files.size(), 2U);
  std::filesystem::resize_file(files.back().path,
                               std::filesystem::file_size(files.back().path) / 2);

  const std::string actual = result_of(2, [&](Engine& engine, ProcessRank& me) {
    return train_with_checkpoints(engine, me, distributed, disturbed, false);
  });
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(actual == expected);
}

TEST(Digits, ARunThatWasKilledAndResumedEndsAsTheUndisturbedOne) {
  expect_resumed_as_undisturbed({});
}

TEST(Digits, SoDoesOneWhoseStateIsSharedOut) {
  DistributedOptimizerOptions distributed;
  distributed.shard_optimizer_state = true;
  expect_resumed_as_undisturbed(distributed);
}

TEST(Digits, SoDoOnesWithCompressedGradients) {
  for (const Compression how : {Compression::power_sgd(2), Compression::top_k(0.05)}) {
    DistributedOptimizerOptions distributed;
    distributed.compression = how;
    expect_resumed_as_undisturbed(distributed);
  }
}

TEST(Digits, TheNoiseScaleComesFromTheRanksOwnGradients) {
  const std::vector<double> noise = to_numbers(result_of(4, [](Engine& engine, ProcessRank&) {
    torch::manual_seed(1);
    Plan plan;
    plan.global_batch = 48;
    DigitsRun run(engine, plan);
    run.optimizer().measure_norms(true);
    NoiseScaleEstimate estimate(20);
    std::vector<double> values;
    for (int i = 0; i < 120; ++i) {
      run.step();
      update_noise_scale(estimate, run.optimizer(), 12, run.how());
      if (i == 19 || i == 119) values.push_back(estimate.value());
    }
    return to_bytes(values);
  }));
  // It grows as the loss falls; the sizes are those of small problems.
  ASSERT_EQ(noise.size(), 2U);
  EXPECT_GT(noise[0], 0.5);
  EXPECT_LT(noise[0], 1000);
  EXPECT_GT(noise[1], noise[0]);
}

}  // namespace
}  // namespace kolo::test

// Checkpoints of runs whose state is spread over the ranks: optimizer state that is shared out, and
// what compression has left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "base/files.h"
#include "kolo/torch/checkpoint.h"
#include "kolo/torch/lamb.h"
#include "multiproc/train/toy.h"
#include "train/optim/serialization.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;

/// A rank of a run on the toy problem that leaves checkpoints in a directory.
class ToyRun {
 public:
  ToyRun(Engine& engine, const fs::path& directory, const MakeOptimizer& make,
         DistributedOptimizerOptions options)
      : engine_(engine),
        inner_(make(net_->parameters())),
        optimizer_(*inner_, net_->named_parameters(), with_engine(std::move(options), engine)),
        checkpoints_({.directory = directory}, how_of(engine)) {}

  /// False if there is nothing to resume.
  bool resume() {
    const auto resumed = checkpoints_.resume(state());
    if (resumed) step_ = static_cast<int>(resumed->step);
    return resumed.has_value();
  }
  void train_until(int last) {
    for (; step_ < last; ++step_) {
      optimizer_.zero_grad();
      loss_of(net_, batch_of(step_, engine_.rank(), engine_.size())).backward();
      optimizer_.step();
    }
  }
  void save() { checkpoints_.save(static_cast<std::uint64_t>(step_), state()); }

  [[nodiscard]] std::vector<torch::Tensor> weights() {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : net_->parameters()) all.push_back(parameter.detach().clone());
    return all;
  }
  DistributedOptimizer& optimizer() { return optimizer_; }

 private:
  static DistributedOptimizerOptions with_engine(DistributedOptimizerOptions options,
                                                 Engine& engine) {
    options.engine = &engine;
    return options;
  }
  static CollectiveOptions how_of(Engine& engine) {
    CollectiveOptions how;
    how.engine = &engine;
    return how;
  }
  TrainingState state() {
    TrainingState all;
    all.module = net_.ptr().get();
    all.distributed = &optimizer_;
    return all;
  }

  Engine& engine_;
  ToyNet net_ = make_net();
  std::unique_ptr<torch::optim::Optimizer> inner_;
  DistributedOptimizer optimizer_;
  Checkpointer checkpoints_;
  int step_ = 0;
};

DistributedOptimizerOptions sharded() {
  DistributedOptimizerOptions options;
  options.shard_optimizer_state = true;
  options.bucket_bytes = 600;
  return options;
}

DistributedOptimizerOptions compressed(Compression how) {
  DistributedOptimizerOptions options;
  options.compression = how;
  options.bucket_bytes = 600;
  return options;
}

MakeOptimizer lamb() {
  return
      [](const auto& parameters) { return std::make_unique<Lamb>(parameters, LambOptions(0.01)); };
}

MakeOptimizer adagrad() {
  return [](const auto& parameters) {
    return std::make_unique<torch::optim::Adagrad>(parameters, torch::optim::AdagradOptions(0.05));
  };
}

void expect_equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << "weight " << i;
}

// A run that goes back to its checkpoint, in the same objects and in new ones, repeats itself.
TEST(Resumed, RunsRepeatTheSameBits) {
  const TempDir directory;
  run_ranks(3, [&](Engine& engine, ProcessRank&) {
    struct Case {
      const char* name;
      MakeOptimizer make;
      DistributedOptimizerOptions options;
    };
    const Case cases[] = {
        {"sgd", sgd(), sharded()},
        {"adam", adam(), sharded()},
        {"adagrad", adagrad(), sharded()},
        {"lamb", lamb(), sharded()},
        {"powersgd", sgd(), compressed(Compression::power_sgd(1))},
        {"topk", sgd(), compressed(Compression::top_k(0.05))},
    };
    for (const auto& [name, make, options] : cases) {
      SCOPED_TRACE(name);
      ToyRun run(engine, directory.path() / name, make, options);
      EXPECT_FALSE(run.resume());
      run.train_until(6);
      run.save();
      run.train_until(12);
      const auto expected = run.weights();
      ASSERT_TRUE(run.resume());
      run.train_until(12);
      expect_equal(run.weights(), expected);

      ToyRun other(engine, directory.path() / name, make, options);
      ASSERT_TRUE(other.resume());
      other.save();  // before its first step: the same again
      ASSERT_TRUE(other.resume());
      other.train_until(12);
      expect_equal(other.weights(), expected);
    }
  });
}

// Saved by two ranks that share the state out; three ranks, two that do not share, and one go on.
TEST(Resumed, SharedOutStateFitsAnyNumberOfRanks) {
  const TempDir directory;
  for (const auto& [name, make] : {std::pair<const char*, MakeOptimizer>{"sgd", sgd(0.9, 0.01)},
                                   {"adam", adam()},
                                   {"adagrad", adagrad()},
                                   {"lamb", lamb()}}) {
    SCOPED_TRACE(name);
    const fs::path first = directory.path() / name;
    run_ranks(2, [&, &make = make](Engine& engine, ProcessRank&) {
      ToyRun run(engine, first, make, sharded());
      run.train_until(5);
      run.save();
    });
    const auto goes_on = [&, &make = make](const DistributedOptimizerOptions& options) {
      return [&first, &make, options](Engine& engine, ProcessRank&) {
        ToyRun run(engine, first, make, options);
        ASSERT_TRUE(run.resume());
        run.train_until(10);
        Reference alone = train_alone(10, make);
        alone.losses.clear();
        expect_close({{}, run.weights()}, alone, 1e-9);
      };
    };
    run_ranks(3, goes_on(sharded()));
    run_ranks(2, goes_on({}));
    run_ranks(1, goes_on(sharded()));
  }
}

/// What one rank has left out, of all parameters one after the other.
torch::Tensor errors_of(const std::string& residuals) {
  std::vector<torch::Tensor> parts;
  for (const auto& [name, tensor] : train::load_tensors(residuals))
    if (name.starts_with("error:")) parts.push_back(tensor.flatten());
  return torch::cat(parts);
}

TEST(Resumed, WhatWasLeftOutIsDividedAmongOtherRanks) {
  for (const ReduceOp op : {ReduceOp::average, ReduceOp::sum}) {
    const TempDir directory;
    auto options = compressed(Compression::top_k(0.05));
    options.op = op;
    run_ranks(2, [&](Engine& engine, ProcessRank&) {
      ToyRun run(engine, directory.path(), sgd(), options);
      run.train_until(4);
      run.save();
    });
    const auto parts = CheckpointFiles::read(directory.path() / "step-000000000004.kolo");
    torch::Tensor expected =
        errors_of(parts.at("residuals.0")) + errors_of(parts.at("residuals.1"));
    EXPECT_GT(expected.abs().max().item<double>(), 0);
    if (op == ReduceOp::average) expected = expected / 2;
    run_ranks(3, [&](Engine& engine, ProcessRank&) {
      ToyRun run(engine, directory.path(), sgd(), options);
      ASSERT_TRUE(run.resume());
      torch::Tensor reduced = errors_of(run.optimizer().residuals()).contiguous();
      engine.allreduce(
          "errors", {reduced.data_ptr(), reduced.data_ptr(), {reduced.numel()}, DataType::float64},
          {.op = op});
      EXPECT_LE((reduced - expected).abs().max().item<double>(), 1e-12);
      run.train_until(6);
    });
  }
}

}  // namespace
}  // namespace kolo::test

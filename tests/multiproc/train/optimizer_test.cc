// DistributedOptimizer: the same answers as one process with the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "kolo/error.h"
#include "multiproc/train/toy.h"
#include "support/arrangement.h"

namespace kolo::test {
namespace {

constexpr double kSame = 1e-9;

class Together : public testing::TestWithParam<int> {};

TEST_P(Together, HasTheLossCurveOfOneProcess) {
  run_ranks(GetParam(), [](Engine& engine, ProcessRank&) {
    expect_close(train_together(engine, 30, sgd()), train_alone(30, sgd()), kSame);
    expect_close(train_together(engine, 30, adam()), train_alone(30, adam()), kSame);
  });
}

TEST_P(Together, ManySmallBuckets) {
  run_ranks(GetParam(), [](Engine& engine, ProcessRank&) {
    DistributedOptimizerOptions options;
    options.bucket_bytes = 64;  // one parameter each
    expect_close(train_together(engine, 10, sgd(), options), train_alone(10, sgd()), kSame);
  });
}

TEST_P(Together, SumPredivideAndGroups) {
  run_ranks(GetParam(), [](Engine& engine, ProcessRank&) {
    const Reference alone = train_alone(10, sgd());
    DistributedOptimizerOptions options;
    options.gradient_predivide_factor = 3.0;
    expect_close(train_together(engine, 10, sgd(), options), alone, kSame);
    options.num_groups = 3;
    expect_close(train_together(engine, 10, sgd(), options), alone, kSame);
    // A sum is n averages: a rate n times smaller makes up for it.
    const double rate = 0.1 / engine.size();
    const auto slower = [rate](const std::vector<torch::Tensor>& parameters) {
      return std::make_unique<torch::optim::SGD>(parameters,
                                                 torch::optim::SGDOptions(rate).momentum(0.9));
    };
    DistributedOptimizerOptions sum;
    sum.op = ReduceOp::sum;
    expect_close(train_together(engine, 10, slower, sum), alone, kSame);
  });
}

TEST_P(Together, ShardedStateGivesTheSame) {
  run_ranks(GetParam(), [](Engine& engine, ProcessRank&) {
    DistributedOptimizerOptions options;
    options.shard_optimizer_state = true;
    expect_close(train_together(engine, 20, sgd(), options), train_alone(20, sgd()), kSame);
    expect_close(train_together(engine, 20, adam(), options), train_alone(20, adam()), kSame);
    const auto adagrad = [](const std::vector<torch::Tensor>& parameters) {
      return std::make_unique<torch::optim::Adagrad>(parameters,
                                                     torch::optim::AdagradOptions(0.05));
    };
    options.bucket_bytes = 512;
    expect_close(train_together(engine, 20, adagrad, options), train_alone(20, adagrad), kSame);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Together, testing::Values(2, 3, 4));

TEST(Optimizer, AloneItOnlySteps) {
  Context context;
  Engine engine(context);
  expect_close(train_together(engine, 5, sgd()), train_alone(5, sgd()), 0);
}

TEST(Optimizer, WeightsAreTheSameBitsAfter200Steps) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    torch::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Linear(20, 300), torch::nn::ReLU(),
                              torch::nn::Linear(300, 100), torch::nn::BatchNorm1d(100),
                              torch::nn::Linear(100, 5));
    torch::optim::SGD inner(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.bucket_bytes = 20'000;
    DistributedOptimizer optimizer(inner, options);
    torch::manual_seed(static_cast<std::uint64_t>(engine.rank()));
    for (int step = 0; step < 200; ++step) {
      optimizer.zero_grad();
      const torch::Tensor x = torch::randn({16, 20});
      torch::mse_loss(net->forward(x), x.slice(1, 0, 5)).backward();
      optimizer.step();
    }
    EXPECT_GT(optimizer.bucket_count(), 2U);
    expect_same_bits(engine, net->parameters());
  });
}

/// One process does what the ranks do: the mean of their losses, each with its branch.
void expect_branches_agree(Engine& engine, const std::function<int(int step, int rank)>& branch,
                           const MakeOptimizer& make = sgd(0.9, 0.1), bool is_sharded = false) {
  const int n = engine.size();
  ToyNet net = make_net(), alone = make_net();
  auto inner = make(net->parameters());
  auto lone_optimizer = make(alone->parameters());
  DistributedOptimizerOptions options;
  options.engine = &engine;
  options.bucket_bytes = 600;
  options.shard_optimizer_state = is_sharded;
  DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
  for (int step = 0; step < 12; ++step) {
    optimizer.zero_grad();
    loss_of(net, batch_of(step, engine.rank(), n), branch(step, engine.rank())).backward();
    optimizer.step();
    for (auto& parameter : alone->parameters()) parameter.mutable_grad().reset();
    torch::Tensor loss = torch::zeros({}, torch::kFloat64);
    for (int r = 0; r < n; ++r)
      loss = loss + loss_of(alone, batch_of(step, r, n), branch(step, r)) / n;
    loss.backward();
    lone_optimizer->step();
    const auto ours = net->parameters(), theirs = alone->parameters();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].grad().defined(), theirs[i].grad().defined()) << step << " " << i;
      EXPECT_LE((ours[i] - theirs[i]).abs().max().item<double>(), kSame) << step << " " << i;
    }
  }
}

TEST(Branches, MayDifferBetweenRanksAndSteps) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    expect_branches_agree(engine, [](int step, int rank) { return (step + rank) % 2; });
    expect_branches_agree(engine, [](int step, int) { return step / 3 % 2; });  // unused by all
    expect_branches_agree(engine, [](int step, int rank) { return rank == 1 && step > 4 ? 1 : 0; });
  });
}

// Momentum, weight decay and Adam's count of steps leave what nobody used alone.
TEST(Branches, AreTheSameWithSharedOutState) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    for (const MakeOptimizer& make : {sgd(0.9, 0.1), adam()}) {
      expect_branches_agree(
          engine, [](int step, int) { return step / 3 % 2; }, make, true);  // unused by all
      expect_branches_agree(
          engine, [](int step, int rank) { return (step + rank) % 2; }, make, true);
    }
  });
}

TEST(Passes, AreSummed) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    ToyNet net = make_net(), alone = make_net();
    auto inner = sgd()(net->parameters());
    auto lone_optimizer = sgd()(alone->parameters());
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.backward_passes_per_step = 3;
    DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      for (auto& parameter : alone->parameters()) parameter.mutable_grad().reset();
      for (int pass = 0; pass < 3; ++pass) {
        loss_of(net, batch_of(step * 3 + pass, engine.rank(), 2)).backward();
        loss_of(alone, batch_of(step * 3 + pass, 0, 1)).backward();
      }
      if (step == 2) {
        try {
          loss_of(net, batch_of(0, 0, 2)).backward();
          ADD_FAILURE() << "a pass too many was taken";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
        }
        optimizer.synchronize();
        break;
      }
      optimizer.step();
      lone_optimizer->step();
      for (std::size_t i = 0; i < net->parameters().size(); ++i)
        EXPECT_LE((net->parameters()[i] - alone->parameters()[i]).abs().max().item<double>(),
                  kSame);
    }
  });
}

TEST(Synchronize, LetsGradientsBeSeenAndClipped) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    for (const bool sharded : {false, true}) {
      ToyNet net = make_net(), alone = make_net();
      auto inner = sgd()(net->parameters());
      auto lone_optimizer = sgd()(alone->parameters());
      DistributedOptimizerOptions options;
      options.engine = &engine;
      options.shard_optimizer_state = sharded;
      DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        for (auto& parameter : alone->parameters()) parameter.mutable_grad().reset();
        loss_of(net, batch_of(step, engine.rank(), 2)).backward();
        loss_of(alone, batch_of(step, 0, 1)).backward();
        if (step == 0) {
          EXPECT_THROW(optimizer.zero_grad(), Error);
        }
        optimizer.synchronize();
        const double norm = optimizer.clip_grad_norm(0.05);
        const double expected = torch::nn::utils::clip_grad_norm_(alone->parameters(), 0.05);
        EXPECT_NEAR(norm, expected, kSame);
        {
          const auto skip = optimizer.skip_synchronize();
          optimizer.step();
        }
        lone_optimizer->step();
        for (std::size_t i = 0; i < net->parameters().size(); ++i)
          EXPECT_LE((net->parameters()[i] - alone->parameters()[i]).abs().max().item<double>(),
                    kSame);
      }
    }
  });
}

TEST(ProcessSet, TrainsByItself) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    const ProcessSetId pair = engine.add_process_set({0, 2});
    DistributedOptimizerOptions options;
    options.process_set = pair;
    if (engine.is_member(pair))
      expect_close(train_together(engine, 10, sgd(), options), train_alone(10, sgd()), kSame);
  });
}

TEST(Joined, RanksBringZeros) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    // Rank r has r + 2 batches. The weights of those that go on are those of one process.
    ToyNet net = make_net(), alone = make_net();
    auto inner = sgd()(net->parameters());
    auto lone_optimizer = sgd()(alone->parameters());
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.bucket_bytes = 600;
    DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
    for (int step = 0; step < engine.rank() + 2; ++step) {
      optimizer.zero_grad();
      loss_of(net, batch_of(step, engine.rank(), 3)).backward();
      optimizer.step();
      for (auto& parameter : alone->parameters()) parameter.mutable_grad().reset();
      torch::Tensor loss = torch::zeros({}, torch::kFloat64);
      for (int r = 0; r < 3; ++r)
        if (step < r + 2) loss = loss + loss_of(alone, batch_of(step, r, 3)) / 3;
      loss.backward();
      lone_optimizer->step();
      for (std::size_t i = 0; i < net->parameters().size(); ++i)
        EXPECT_LE((net->parameters()[i] - alone->parameters()[i]).abs().max().item<double>(), kSame)
            << "step " << step;
    }
    EXPECT_EQ(engine.join(), 2);
  });
}

// Each time another rank is the last, by one step in which the others stand in.
TEST(Joined, TheLastIsTheLast) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    torch::nn::Linear layer(4, 3);
    torch::optim::SGD inner(layer->parameters(), 0.1);
    DistributedOptimizer optimizer(inner, {.engine = &engine});
    for (int round = 0; round < 30; ++round) {
      const int last = round % 3;
      for (int step = engine.rank() == last ? 0 : 1; step < 2; ++step) {
        optimizer.zero_grad();
        layer->forward(torch::ones({2, 4})).sum().backward();
        optimizer.step();
      }
      ASSERT_EQ(engine.join(), last) << "round " << round;
    }
  });
}

TEST(State, IsSharedOut) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    torch::nn::Linear layer(200, 301);
    torch::optim::Adam inner(layer->parameters(), torch::optim::AdamOptions(0.01));
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.shard_optimizer_state = true;
    DistributedOptimizer optimizer(inner, options);
    layer->forward(torch::ones({2, 200})).sum().backward();
    optimizer.step();
    const std::size_t whole = 2 * 4 * (200 * 301 + 301);
    EXPECT_LE(optimizer_state_bytes(inner), whole * 52 / 100);
    EXPECT_GE(optimizer_state_bytes(inner), whole * 48 / 100);
  });
}

/// Trains until tuning is over and beyond; returns what was logged.
std::string tuned_log(const std::vector<int>& host_of_rank) {
  const TempDir directory;
  const std::string log = (directory.path() / "tune.csv").string();
  run_ranks_on(host_of_rank, [&](Engine& engine, ProcessRank&) {
    DistributedOptimizerOptions options;
    options.autotune = true;
    options.autotune_log = log;
    options.bucket_bytes = 600;
    constexpr int kSteps = 145;  // eleven trials at most, of twelve steps
    const Reference run = train_together(engine, kSteps, sgd(), options);
    expect_close(run, train_alone(kSteps, sgd()), kSame);
    expect_same_bits(engine, run.weights);
  });
  return read_file(log);
}

TEST(Autotune, EndsAndChangesNothingButSpeed) {
  const std::string text = tuned_log({0, 0});
  EXPECT_THAT(text, testing::StartsWith("trial,bucket_bytes,reduced_by,one_trip_bytes,"
                                        "seconds_per_step,chosen\n0,600,trainer,0,"));
  EXPECT_THAT(text, testing::HasSubstr(",helper,0,"));
  EXPECT_THAT(text, testing::HasSubstr(",1\n"));
}

TEST(Autotune, TriesSizesOfTripsBetweenHosts) {
  if (std::string why; !is_available({"", "tcp", {0, 1}, "tcp"}, &why)) GTEST_SKIP() << why;
  const std::string text = tuned_log({0, 1});
  EXPECT_THAT(text, testing::HasSubstr("\n0,600,helper,4194304,"));
  EXPECT_THAT(text, testing::HasSubstr(",1048576,"));
  EXPECT_THAT(text, testing::HasSubstr(",16777216,"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr(",trainer,")));  // there is no choice
  EXPECT_THAT(text, testing::HasSubstr(",1\n"));
}

TEST(Timeline, ShowsGradientsOnTheirWay) {
  const TempDir directory;
  const std::string path = (directory.path() / "trace.json").string();
  constexpr int kSteps = 3;
  run_ranks(2, [&](Engine& engine, ProcessRank&) {
    ToyNet net = make_net();
    auto inner = sgd()(net->parameters());
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.bucket_bytes = 600;
    DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
    const auto step = [&](int number) {
      optimizer.zero_grad();
      loss_of(net, batch_of(number, engine.rank(), 2)).backward();
      optimizer.step();
    };
    step(0);  // agrees on buckets
    engine.start_timeline(path);
    for (int i = 1; i <= kSteps; ++i) step(i);
    engine.stop_timeline();
    EXPECT_GT(optimizer.bucket_count(), 1U);
  });
  // Of each rank: every bucket is queued and reduced in each step, and every gradient that there
  // is, of three layers of four, is copied into one.
  std::map<int, std::map<std::string, int>> events;
  std::map<int, std::set<std::string>> buckets;
  for (const Json& event : parse_json(read_file(path), path)) {
    const std::string row = event.value("tid", "");
    if (!row.starts_with("bucket")) continue;
    const int rank = event.at("pid").get<int>();
    ++events[rank][event.at("name").get<std::string>()];
    buckets[rank].insert(row);
  }
  for (int r = 0; r < 2; ++r) {
    const int count = static_cast<int>(buckets[r].size()) * kSteps;
    EXPECT_GT(count, kSteps);
    for (const char* what : {"ready", "QUEUE", "ALLREDUCE"}) EXPECT_EQ(events[r][what], count);
    EXPECT_EQ(events[r]["MEMCPY_IN_FUSION_BUFFER"], 3 * 2 * kSteps);
  }
}

TEST(Mistakes, AreErrorsOnAllRanks) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    torch::nn::Linear layer(4, 3 + engine.rank());
    torch::optim::SGD inner(layer->parameters(), 0.1);
    DistributedOptimizerOptions options;
    options.engine = &engine;
    DistributedOptimizer optimizer(inner, layer->named_parameters(), options);
    layer->forward(torch::ones({2, 4})).sum().backward();
    try {
      optimizer.step();
      ADD_FAILURE() << "different shapes were taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.message(), testing::HasSubstr("weight float32[3, 4]"));
      EXPECT_THAT(error.message(), testing::HasSubstr("weight float32[4, 4]"));
    }
    expect_close(train_together(engine, 3, sgd()), train_alone(3, sgd()), kSame);
  });
}

TEST(Mistakes, GradientsThatDoNotFitIntoSharedMemoryAreAnErrorAtEachStep) {
  ::setenv("KOLO_SHARED_MEMORY_BYTES", "67108864", 1);
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    torch::nn::Sequential model;
    for (int i = 0; i < 20; ++i) model->push_back(torch::nn::Linear(1000, 1000));
    torch::optim::SGD inner(model->parameters(), 0.1);
    DistributedOptimizer optimizer(inner, {.engine = &engine});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      model->forward(torch::ones({1, 1000})).sum().backward();
      try {
        optimizer.step();
        ADD_FAILURE() << "it fits";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.message();
      }
    }
  });
  ::unsetenv("KOLO_SHARED_MEMORY_BYTES");
}

TEST(Mistakes, InOptions) {
  Context context;
  Engine engine(context);
  torch::nn::Linear layer(4, 3), other(4, 3);
  torch::optim::SGD inner(layer->parameters(), 0.1);
  const auto refuses = [&](const std::function<void(DistributedOptimizerOptions&)>& change) {
    DistributedOptimizerOptions options;
    options.engine = &engine;
    change(options);
    EXPECT_THROW(DistributedOptimizer(inner, options), Error);
  };
  refuses([](auto& o) { o.op = ReduceOp::max; });
  refuses([](auto& o) { o.backward_passes_per_step = 0; });
  refuses([](auto& o) { o.gradient_predivide_factor = 0; });
  refuses([](auto& o) { o.op = ReduceOp::sum, o.gradient_predivide_factor = 2; });
  refuses([&](auto& o) { o.groups = {{other->weight}}; });
  refuses([&](auto& o) { o.groups = {{layer->weight}, {layer->weight}}; });
  refuses([](auto& o) { o.process_set = ProcessSetId{9}; });
  EXPECT_THROW(DistributedOptimizer(inner, other->named_parameters(), {.engine = &engine}), Error);
}

}  // namespace
}  // namespace kolo::test

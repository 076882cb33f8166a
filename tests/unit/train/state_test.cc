// Same beginnings on all ranks, averaged metrics, normalisation over all ranks; threads as ranks.
#include "kolo/torch/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kolo/error.h"
#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"
#include "kolo/torch/sync_batch_norm.h"
#include "support/thread_ranks.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

void on_ranks(int ranks, const std::function<void(Engine&, CollectiveOptions)>& body) {
  test::ThreadRanksOptions options;
  options.host_of_rank.assign(static_cast<std::size_t>(ranks), 0);
  test::ThreadRanks job(options);
  job.run([&](Communicator& world) {
    Engine engine(world);
    CollectiveOptions how;
    how.engine = &engine;
    body(engine, how);
    world.barrier();
  });
}

void check(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

TEST(Objects, TravelAsBytes) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    const std::string bytes = std::string("a\0b", 3) + std::string(100'000, 'x');
    check(broadcast_object(engine.rank() == 1 ? bytes : "other", 1, how) == bytes, "broadcast");
    check(broadcast_object("", 0, how).empty(), "nothing");
    how.name = "named";
    auto all = allgather_object(std::string(static_cast<std::size_t>(engine.rank()), 'r'), how);
    check(all == std::vector<std::string>{"", "r", "rr"}, "allgather");
  });
}

TEST(Objects, TravelAsJson) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    check(broadcast_json("{ \"a\" : [1, 2.5] }", 0, how) == "{\"a\":[1,2.5]}", "broadcast");
    auto all = allgather_json(std::to_string(engine.rank()), how);
    check(all == std::vector<std::string>{"0", "1"}, "allgather");
    try {
      (void)allgather_json(engine.rank() == 1 ? "{" : "1", how);
      check(false, "no JSON");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::invalid_argument, error.what());
      check(error.message().find("rank 1") != std::string::npos, error.what());
    }
  });
}

TEST(BroadcastParameters, MakesNetworksEqual) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
    {
      torch::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.fill_(engine.rank());
      for (auto& buffer : net->buffers()) buffer.fill_(engine.rank());
    }
    broadcast_parameters(*net, 2, how);
    for (const auto& parameter : net->parameters())
      check(parameter.eq(2).all().item<bool>(), "parameters");
    for (const auto& buffer : net->buffers()) check(buffer.eq(2).all().item<bool>(), "buffers");
    std::vector<torch::Tensor> list{torch::full({2}, engine.rank()),
                                    torch::full({1}, engine.rank())};
    broadcast_parameters(list, 1, how);
    check(list[0].equal(torch::full({2}, 1)), "list");
  });
}

/// One optimizer per rank; only those in `steps` have made steps, so only they have state.
template <class Optimizer, class Options>
void expect_equal_after_broadcast(Options options, int root_steps, int other_steps) {
  on_ranks(2, [&](Engine& engine, CollectiveOptions how) {
    const bool is_root = engine.rank() == 0;
    torch::Tensor w = torch::arange(6, torch::kFloat64).view({2, 3}).requires_grad_();
    torch::Tensor b = torch::ones({3}, torch::kFloat64).requires_grad_();
    Options mine = options;
    mine.lr(is_root ? 0.25 : 0.5);
    Optimizer optimizer({w, b}, mine);
    auto steps = [&](int count) {
      for (int i = 0; i < count; ++i) {
        w.mutable_grad() = torch::full({2, 3}, 0.1 * (i + 1), torch::kFloat64);
        b.mutable_grad() = torch::full({3}, 0.2, torch::kFloat64);
        optimizer.step();
      }
    };
    steps(is_root ? root_steps : other_steps);
    broadcast_parameters(std::vector<torch::Tensor>{w, b}, 0, how);
    broadcast_optimizer_state(optimizer, 0, how);
    check(optimizer.param_groups()[0].options().get_lr() == 0.25, "options");
    steps(3);
    for (const torch::Tensor& tensor : {w, b}) {
      torch::Tensor all = synchronize(allgather_async(tensor.detach().unsqueeze(0), how));
      check(all[0].equal(all[1]), "weights after three more steps");
    }
  });
}

template <class Optimizer, class Options>
void expect_broadcast(Options options) {
  expect_equal_after_broadcast<Optimizer>(options, 2, 0);  // others have nothing yet
  expect_equal_after_broadcast<Optimizer>(options, 0, 2);  // root has nothing yet
  expect_equal_after_broadcast<Optimizer>(options, 3, 1);
  expect_equal_after_broadcast<Optimizer>(options, 0, 0);
}

TEST(BroadcastOptimizerState, WorksForEveryKind) {
  expect_broadcast<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  expect_broadcast<torch::optim::Adam>(torch::optim::AdamOptions(0.1));
  expect_broadcast<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1));
  expect_broadcast<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.1).momentum(0.5));
  expect_broadcast<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1));
  expect_broadcast<Lars>(LarsOptions(0.1));
  expect_broadcast<Lamb>(LambOptions(0.1));
}

TEST(BroadcastOptimizerState, RefusesWhatItCannotCopyOnEveryRank) {
  on_ranks(2, [](Engine&, CollectiveOptions how) {
    torch::Tensor w = torch::ones({2}).requires_grad_();
    torch::optim::LBFGS optimizer({w}, torch::optim::LBFGSOptions(1));
    try {
      broadcast_optimizer_state(optimizer, 0, how);
      check(false, "LBFGS");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::unsupported, error.what());
    }
  });
}

TEST(AverageMetrics, WeighsRanks) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    const double rank = engine.rank();
    Metrics all = average_metrics({{"loss", rank}, {"accuracy", 1 - rank}}, 1, how);
    check(all == Metrics{{"accuracy", 0.5}, {"loss", 0.5}}, "mean");
    all = average_metrics({{"loss", rank}}, rank == 0 ? 3 : 1, how);
    check(all["loss"] == 0.25, "weighted");
    try {
      (void)average_metrics({{engine.rank() == 0 ? "a" : "b", 1.0}}, 1, how);
      check(false, "names differ");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::invalid_argument, error.what());
    }
  });
}

/// Training on parts of a batch equals BatchNorm on all of it.
void expect_sync_batch_norm(torch::IntArrayRef tail, const std::vector<int64_t>& rows) {
  constexpr int64_t kFeatures = 3;
  int64_t total = 0;
  for (int64_t count : rows) total += count;
  std::vector<int64_t> shape{total, kFeatures};
  shape.insert(shape.end(), tail.begin(), tail.end());
  torch::manual_seed(1);
  torch::Tensor input = torch::randn(shape, torch::kFloat64) * 2 + 1000;
  torch::Tensor weights = torch::randn(shape, torch::kFloat64);

  torch::nn::BatchNorm1d norm1(kFeatures);
  torch::nn::BatchNorm2d norm2(kFeatures);
  norm1->to(torch::kFloat64);
  norm2->to(torch::kFloat64);
  torch::Tensor whole = input.clone().requires_grad_();
  auto run = [&](auto& norm) {
    torch::Tensor out = norm->forward(whole);
    (out * weights).sum().backward();
    return std::make_tuple(out.detach(), norm->weight.grad(), norm->bias.grad(), norm->running_mean,
                           norm->running_var);
  };
  const auto [out, weight_gradient, bias_gradient, mean, variance] =
      tail.size() == 2 ? run(norm2) : run(norm1);
  const torch::Tensor &expected_out = out, &expected_weight = weight_gradient,
                      &expected_bias = bias_gradient, &expected_mean = mean,
                      &expected_variance = variance;

  on_ranks(static_cast<int>(rows.size()), [&](Engine& engine, CollectiveOptions how) {
    int64_t first = 0;
    for (int r = 0; r < engine.rank(); ++r) first += rows[static_cast<std::size_t>(r)];
    const int64_t count = rows[static_cast<std::size_t>(engine.rank())];
    SyncBatchNorm norm(SyncBatchNormOptions(kFeatures).engine(&engine));
    norm->to(torch::kFloat64);
    torch::Tensor mine = input.narrow(0, first, count).clone().requires_grad_();
    torch::Tensor result = norm->forward(mine);
    (result * weights.narrow(0, first, count)).sum().backward();
    check(result.allclose(expected_out.narrow(0, first, count), 1e-9, 1e-9), "output");
    check(mine.grad().allclose(whole.grad().narrow(0, first, count), 1e-7, 1e-7), "gradient");
    check(norm->running_mean.allclose(expected_mean, 1e-9, 1e-9), "running mean");
    check(norm->running_var.allclose(expected_variance, 1e-9, 1e-9), "running variance");
    how.op = ReduceOp::sum;
    check(allreduce(norm->weight.grad(), how).allclose(expected_weight, 1e-7, 1e-7), "weight");
    check(allreduce(norm->bias.grad(), how).allclose(expected_bias, 1e-9, 1e-9), "bias");
    norm->eval();
    torch::Tensor evaluated = norm->forward(mine.detach());
    torch::Tensor plain =
        torch::batch_norm(mine.detach(), norm->weight, norm->bias, norm->running_mean,
                          norm->running_var, false, 0.1, 1e-5, false);
    check(evaluated.equal(plain), "evaluation");
  });
}

TEST(SyncBatchNorm, EqualsBatchNormOverAllSamples) {
  expect_sync_batch_norm({}, {4, 4});
  expect_sync_batch_norm({5, 2}, {3, 4, 1});
  expect_sync_batch_norm({}, {5, 0, 2});  // a rank without samples
}

TEST(SyncBatchNorm, StaysInItsProcessSet) {
  on_ranks(3, [](Engine& engine, CollectiveOptions) {
    const ProcessSetId set = engine.add_process_set({0, 2});
    SyncBatchNorm norm(SyncBatchNormOptions(1).engine(&engine).process_set(set).affine(false));
    torch::Tensor mine = torch::full({2, 1}, static_cast<double>(engine.rank()));
    torch::Tensor out = norm->forward(mine);
    // Ranks 0 and 2 share mean 1; rank 1 is alone with a constant batch.
    const double expected = engine.rank() - 1.0;
    check(out.allclose(torch::full({2, 1}, expected), 1e-4, 1e-4), "values");
  });
}

TEST(SyncBatchNorm, RefusesWrongInputs) {
  SyncBatchNorm norm(SyncBatchNormOptions(3));
  EXPECT_THROW(norm->forward(torch::ones({2, 4})), Error);
  EXPECT_THROW(SyncBatchNorm(SyncBatchNormOptions(0)), Error);
  EXPECT_EQ(norm->forward(torch::randn({4, 3})).sizes(), (std::vector<int64_t>{4, 3}));
}

}  // namespace
}  // namespace kolo

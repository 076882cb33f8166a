// Gradients that travel in fewer bytes, sparse ones, and Adasum.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "multiproc/train/toy.h"

namespace kolo::test {
namespace {

double final_loss(const Reference& run) {
  double sum = 0;
  for (std::size_t i = run.losses.size() - 5; i < run.losses.size(); ++i) sum += run.losses[i];
  return sum / 5;
}

TEST(Compression, SixteenBitsAreAlmostTheSame) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    const Reference dense = train_alone(20, sgd());
    for (const Compression how : {Compression::fp16(), Compression::bf16()}) {
      DistributedOptimizerOptions options;
      options.compression = how;
      const Reference run = train_together(engine, 20, sgd(), options);
      expect_close(run, dense, how.kind == Compression::Kind::fp16 ? 5e-3 : 5e-2);
      expect_same_bits(engine, run.weights);
    }
  });
}

TEST(Compression, WithFeedbackReachesTheLossOfDense) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    constexpr int kSteps = 400;
    const double dense = final_loss(train_alone(kSteps, sgd(0.0)));
    for (const Compression how : {Compression::power_sgd(2), Compression::top_k(0.2)}) {
      DistributedOptimizerOptions options;
      options.compression = how;
      const Reference run = train_together(engine, kSteps, sgd(0.0), options);
      EXPECT_LE(final_loss(run), dense * 1.15);
      expect_same_bits(engine, run.weights);
    }
  });
}

// All columns and all entries: what comes out is the dense gradient.
TEST(Compression, WithoutLossIsDense) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    DistributedOptimizerOptions options;
    options.compression = Compression::top_k(1.0);
    expect_close(train_together(engine, 10, sgd(), options), train_alone(10, sgd()), 1e-9);
  });
}

TEST(Sparse, GradientsOfEmbeddings) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    for (const bool as_dense : {false, true}) {
      const auto make = [] {
        torch::manual_seed(1);
        return torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 4).sparse(true));
      };
      torch::nn::Embedding table = make(), alone = make();
      torch::optim::SGD inner(table->parameters(), 0.5), lone_optimizer(alone->parameters(), 0.5);
      DistributedOptimizerOptions options;
      options.engine = &engine;
      options.sparse_as_dense = as_dense;
      DistributedOptimizer optimizer(inner, options);
      const auto words = [](int step, int rank) {
        return torch::tensor({(step + rank) % 20, (3 * step) % 20, (7 * rank + step) % 20});
      };
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grad();
        const bool is_idle = step == 3 && engine.rank() == 1;  // no gradient here
        if (!is_idle) table->forward(words(step, engine.rank())).pow(2).sum().backward();
        optimizer.step();
        alone->weight.mutable_grad().reset();
        torch::Tensor loss = torch::zeros({});
        for (int r = 0; r < 3; ++r)
          if (!(step == 3 && r == 1)) loss = loss + alone->forward(words(step, r)).pow(2).sum() / 3;
        loss.backward();
        lone_optimizer.step();
        EXPECT_EQ(table->weight.grad().is_sparse(), !as_dense);
        EXPECT_LE((table->weight - alone->weight).abs().max().item<float>(), 1e-6F) << step;
      }
    }
  });
}

// With equal changes on all ranks Adasum is an average: a single rank's step.
TEST(Adasum, OfEqualStepsIsOneStep) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    ToyNet net = make_net(), alone = make_net();
    auto inner = sgd()(net->parameters());
    auto lone_optimizer = sgd()(alone->parameters());
    DistributedOptimizerOptions options;
    options.engine = &engine;
    options.op = ReduceOp::adasum;
    DistributedOptimizer optimizer(*inner, options);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      for (auto& parameter : alone->parameters()) parameter.mutable_grad().reset();
      loss_of(net, batch_of(step, 0, 1)).backward();
      loss_of(alone, batch_of(step, 0, 1)).backward();
      optimizer.step();
      lone_optimizer->step();
      for (std::size_t i = 0; i < net->parameters().size(); ++i)
        EXPECT_LE((net->parameters()[i] - alone->parameters()[i]).abs().max().item<double>(), 1e-9);
    }
  });
}

TEST(Adasum, OfDifferentStepsLearns) {
  run_ranks(3, [](Engine& engine, ProcessRank&) {
    DistributedOptimizerOptions options;
    options.op = ReduceOp::adasum;
    const Reference run = train_together(engine, 100, sgd(0.0), options);
    EXPECT_LT(final_loss(run), run.losses[0] / 2);
    expect_same_bits(engine, run.weights);
  });
}

}  // namespace
}  // namespace kolo::test

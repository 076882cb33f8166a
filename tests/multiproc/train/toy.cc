#include "multiproc/train/toy.h"

#include <torch/torch.h>

namespace kolo::test {

namespace nn = torch::nn;

ToyNetImpl::ToyNetImpl()
    : first(register_module("first", nn::Linear(6, 16))),
      left(register_module("left", nn::Linear(16, 16))),
      right(register_module("right", nn::Linear(16, 16))),
      last(register_module("last", nn::Linear(16, 3))) {
  to(torch::kFloat64);
}

torch::Tensor ToyNetImpl::forward(torch::Tensor x, int branch) {
  x = torch::tanh(first(x));
  x = torch::tanh(branch == 0 ? left(x) : right(x));
  return last(x);
}

ToyNet make_net() {
  torch::manual_seed(7);
  return {};
}

MakeOptimizer sgd(double momentum, double weight_decay) {
  return [=](const auto& parameters) {
    return std::make_unique<torch::optim::SGD>(
        parameters, torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(weight_decay));
  };
}

MakeOptimizer adam() {
  return [](const auto& parameters) {
    return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.01));
  };
}

ToyBatch batch_of(int step, int rank, int size) {
  auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 + step));
  const auto options = torch::TensorOptions(torch::kFloat64);
  const torch::Tensor inputs = torch::randn({kGlobalBatch, 6}, random, options);
  const torch::Tensor targets = torch::sin(inputs.slice(1, 0, 3)) * 2;
  return {inputs.slice(0, rank, kGlobalBatch, size), targets.slice(0, rank, kGlobalBatch, size)};
}

torch::Tensor loss_of(ToyNet& net, const ToyBatch& batch, int branch) {
  return torch::mse_loss(net->forward(batch.inputs, branch), batch.targets);
}

Reference train_alone(int steps, const MakeOptimizer& make) {
  ToyNet net = make_net();
  auto optimizer = make(net->parameters());
  Reference reference;
  for (int step = 0; step < steps; ++step) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
    const torch::Tensor loss = loss_of(net, batch_of(step, 0, 1));
    loss.backward();
    optimizer->step();
    reference.losses.push_back(loss.item<double>());
  }
  for (const auto& parameter : net->parameters())
    reference.weights.push_back(parameter.detach().clone());
  return reference;
}

Reference train_together(Engine& engine, int steps, const MakeOptimizer& make,
                         DistributedOptimizerOptions options) {
  const ProcessSetId set = options.process_set;
  options.engine = &engine;
  ToyNet net = make_net();
  auto inner = make(net->parameters());
  DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
  Reference reference;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad(step % 2 == 0);  // both ways, in turn
    const torch::Tensor loss = loss_of(net, batch_of(step, engine.rank(set), engine.size(set)));
    loss.backward();
    optimizer.step();
    double mean = loss.item<double>();
    engine.allreduce("loss", {&mean, &mean, {}, DataType::float64}, {.process_set = set});
    reference.losses.push_back(mean);
  }
  for (const auto& parameter : net->parameters())
    reference.weights.push_back(parameter.detach().clone());
  return reference;
}

void expect_close(const Reference& a, const Reference& b, double tolerance) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance) << "step " << i;
  for (std::size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_LE((a.weights[i] - b.weights[i]).abs().max().item<double>(), tolerance)
        << "weight " << i;
}

void expect_same_bits(Engine& engine, const std::vector<torch::Tensor>& tensors) {
  int index = 0;
  for (const auto& tensor : tensors) {
    const torch::Tensor mine = tensor.detach().contiguous();
    std::vector<std::uint8_t> all;
    const auto bytes = static_cast<std::int64_t>(mine.nbytes());
    engine.synchronize(engine.allgather_async("bits", mine.data_ptr(), {bytes}, DataType::uint8,
                                              Communicator::into(all)));
    for (int r = 1; r < engine.size(); ++r)
      EXPECT_EQ(std::memcmp(all.data(), all.data() + r * bytes, mine.nbytes()), 0)
          << "tensor " << index << " of rank " << r;
    ++index;
  }
}

void run_ranks(int count, const RankBody& body) {
  run_ranks_on(std::vector<int>(static_cast<std::size_t>(count), 0), body);
}

void run_ranks_on(const std::vector<int>& host_of_rank, const RankBody& body) {
  ProcessRanks ranks({.host_of_rank = host_of_rank}, [&](ProcessRank& me) {
    at::set_num_threads(1);
    Context context(me.options(std::chrono::seconds(30)));
    Engine engine(context);
    body(engine, me);
    engine.barrier();
    return std::string("done");
  });
  for (const Outcome& outcome : ranks.finish()) {
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.result, "done");
  }
}

}  // namespace kolo::test

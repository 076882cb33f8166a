// Training whose ranks each have something that the others do not: a shard of the optimizer's
// state, or what compression has left out. All ranks compute the same batch, so that the result
// does not depend on how many they are: owned_rank shards|top_k [--steps N] [--until FILE]
// [--pause-ms N].
#include <kolo/torch.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "options.h"
#include "rank_main.h"

namespace {

int run(int argc, char** argv) {
  const bool shards = argc > 1 && std::strcmp(argv[1], "shards") == 0;
  const std::int64_t steps = options::number(argc, argv, "--steps", 1'000'000);
  const std::string until = options::text(argc, argv, "--until", "");
  const std::chrono::milliseconds pause(options::number(argc, argv, "--pause-ms", 0));
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(16, 32), torch::nn::Tanh(), torch::nn::Linear(32, 4));
  net->to(torch::kFloat64);  // averages over two and three ranks differ by little
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.01));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05));
  torch::optim::Optimizer& inner = shards ? static_cast<torch::optim::Optimizer&>(adam) : sgd;
  kolo::DistributedOptimizerOptions how;
  how.shard_optimizer_state = shards;
  if (!shards) how.compression = kolo::Compression::top_k(0.1);

  std::int64_t step = 0;
  kolo::elastic::TorchState state(*net, inner);
  state.add(step);
  const auto ending = kolo::elastic::run(state, [&](kolo::elastic::State&) {
    kolo::DistributedOptimizer optimizer(inner, net->named_parameters(), how);
    std::printf("process %d is rank %d of %d from step %lld on\n", static_cast<int>(::getpid()),
                kolo::rank(), kolo::size(), static_cast<long long>(step));
    std::fflush(stdout);
    for (int here = 0; step < steps; ++here) {
      if (here == 10 && kolo::rank() == 0) {
        std::printf("ten steps by %d ranks\n", kolo::size());
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(pause);
      const std::int32_t seen = !until.empty() && std::filesystem::exists(until) ? 1 : 0;
      if (kolo::world().allreduce(seen, kolo::ReduceOp::max) == 1) return;
      const torch::Tensor x =
          torch::sin(torch::arange(8 * 16, torch::kFloat64).view({8, 16}) * (1.0 + 0.37 * step));
      optimizer.zero_grad();
      (net->forward(x) - x.narrow(1, 0, 4).square()).square().mean().backward();
      optimizer.step();
      ++step;
      state.commit();
    }
  });
  if (ending == kolo::elastic::Ending::left || kolo::rank() != 0) return EXIT_SUCCESS;
  double sum = 0;
  for (const torch::Tensor& parameter : net->parameters()) {
    const torch::Tensor flat = parameter.detach().flatten();
    sum += (flat * torch::cos(torch::arange(flat.numel(), torch::kFloat64))).sum().item<double>();
  }
  std::printf("%lld steps, weights %.12f\n", static_cast<long long>(step), sum);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) { return kolo::test::rank_main("owned_rank", run, argc, argv); }

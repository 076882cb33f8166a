// A training program outside kolo's tree: sums its ranks, trains a little, and says so from rank 0.
// Usage: torch_consumer [expected number of ranks]
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

/// With what every training program uses.
bool train_one_step() {
  const kolo::Dataset digits = kolo::load_digits(kolo::Split::test);
  torch::nn::Linear net(64, 10);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  kolo::Trainer trainer(net, kolo::cross_entropy, sgd, {.epochs = 1, .batch_per_rank = 64});
  trainer.add<kolo::BroadcastCallback>();
  return trainer.fit(digits).front().at("loss") > 0;
}

int main(int argc, char** argv) {
  try {
    kolo::init();
    kolo::set_compute_threads(1);
    int expected = argc > 1 ? std::atoi(argv[1]) : 1;
    torch::Tensor mine = torch::full({3}, static_cast<float>(kolo::rank() + 1));
    int sum = static_cast<int>(kolo::allreduce(mine, {.op = kolo::ReduceOp::sum})[2].item<float>());
    bool right =
        kolo::size() == expected && sum == expected * (expected + 1) / 2 && train_one_step();
    if (kolo::rank() == 0)
      std::printf("libtorch %s: %d ranks, sum %d, %s\n", TORCH_VERSION, kolo::size(), sum,
                  right ? "right" : "WRONG");
    kolo::shutdown();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_consumer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

// Learns to read handwritten digits, on any number of ranks.
//
//   kolo run -np 4 build/release/bin/kolo_digits_distributed     prints:  test accuracy 0.98…
//
// digits_single.cc is the program it was made from; the eight steps between them are numbered.
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x.view({-1, 1, 8, 8})));
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 16, 3).padding(1)};
  torch::nn::Linear fc1{256, 64}, fc2{64, 10};
};
TORCH_MODULE(Net);

int main() {
  constexpr int kEpochs = 12;
  constexpr int kBatch = 16;
  constexpr double kRate = 0.02;
  kolo::init();  // 1. initialise
  torch::manual_seed(1 + kolo::rank());
  torch::Device device = kolo::device_of_rank();  // 2. the device, by local rank

  const kolo::Dataset train = kolo::load_digits(kolo::Split::train);
  const kolo::Dataset test = kolo::load_digits(kolo::Split::test);
  kolo::DistributedSampler sampler(train.size());  // 3. shard the data (one rank: all of it)

  Net net;
  net->to(device);
  const double rate = kRate * kolo::size();  // 4. scale the learning rate …
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(rate).momentum(0.9));
  kolo::DistributedOptimizer optimizer(sgd, net->named_parameters());  // 5. wrap the optimizer
  kolo::broadcast_parameters(*net);                                    // 6. the same beginning
  kolo::broadcast_optimizer_state(sgd);
  kolo::RateScheduler warmup(  // 4. … and warm up to it
      sgd, kolo::schedule::warmup({.start = kRate, .epochs = 3}, kolo::schedule::constant(rate)),
      {.steps_per_epoch = kolo::steps_per_epoch(train.size(), kBatch, kolo::size())});

  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double loss_sum = 0;
    int steps = 0;
    sampler.set_epoch(epoch);
    while (auto samples = sampler.next(kBatch)) {
      const kolo::Batch batch = train.batch(*samples);
      optimizer.zero_grad();
      torch::Tensor output = net->forward(batch.inputs.to(device));
      torch::Tensor loss = torch::nll_loss(output.log_softmax(1), batch.targets.to(device));
      loss.backward();
      warmup.step();
      optimizer.step();
      loss_sum += loss.item<double>();
      ++steps;
    }
    const auto metrics = kolo::average_metrics({{"loss", loss_sum / steps}});  // 8. average metrics
    if (kolo::rank() == 0) std::printf("epoch %2d  loss %.4f\n", epoch + 1, metrics.at("loss"));
  }
  if (kolo::rank() == 0) torch::save(net, "digits.pt");  // 7. rank 0 saves

  torch::NoGradGuard no_grad;
  torch::Tensor answers = net->forward(test.inputs.to(device)).argmax(1).cpu();
  const double accuracy = answers.eq(test.targets).to(torch::kFloat64).mean().item<double>();
  if (kolo::rank() == 0) std::printf("test accuracy %.4f\n", accuracy);
  kolo::shutdown();
  return accuracy > 0.97 ? EXIT_SUCCESS : EXIT_FAILURE;
}

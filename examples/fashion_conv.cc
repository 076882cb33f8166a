// A small convolutional network on Fashion-MNIST, with Trainer.
//
//   kolo run -np 2 build/release/bin/kolo_fashion_conv                    90 % after 3 epochs
//   kolo run -np 2 build/release/bin/kolo_fashion_conv --samples 4000     a taste, in seconds
//
// Options: --samples N of the 60,000 (all), --epochs N (3), --checkpoints DIR (a run that was ended
// goes on from there), --tensorboard DIR. The data come from Debian's package
// dataset-fashion-mnist. The exit status is 1 when the accuracy is below what is to be expected:
// 0.9 for all samples, 0.7 for a part.
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

#include "options.h"

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
    register_module("norm2", norm2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(norm1(conv1(x))), 2);
    x = torch::max_pool2d(torch::relu(norm2(conv2(x))), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 32, 3).padding(1)};
  torch::nn::BatchNorm2d norm1{16}, norm2{32};
  torch::nn::Linear fc1{32 * 7 * 7, 128}, fc2{128, 10};
};
TORCH_MODULE(Net);

int run(int argc, char** argv) {
  constexpr std::size_t kBatch = 32;
  const auto samples = static_cast<std::size_t>(options::number(argc, argv, "--samples", 60'000));
  const auto epochs = static_cast<std::uint64_t>(options::number(argc, argv, "--epochs", 3));
  const std::string checkpoints = options::text(argc, argv, "--checkpoints", "");
  const std::string tensorboard = options::text(argc, argv, "--tensorboard", "");
  torch::manual_seed(1);

  const kolo::Dataset train = kolo::load_fashion_mnist(kolo::Split::train).head(samples);
  const kolo::Dataset test =
      kolo::load_fashion_mnist(kolo::Split::test).head(std::max<std::size_t>(samples / 6, 1000));
  const auto scaled = kolo::scale_linearly({.rate = 0.02, .batch = kBatch}, kolo::size());

  Net net;
  torch::optim::SGD sgd(net->parameters(),
                        torch::optim::SGDOptions(scaled.rate).momentum(0.9).weight_decay(1e-4));
  kolo::Trainer trainer(net, kolo::cross_entropy, sgd,
                        {.epochs = epochs, .batch_per_rank = scaled.batch_per_rank});
  trainer.metric("accuracy", kolo::accuracy)
      .add<kolo::BroadcastCallback>()
      .add<kolo::MetricAverageCallback>()
      .add<kolo::RateCallback>(kolo::schedule::warmup(
          {.start = 0.02, .epochs = 0.5},
          kolo::schedule::cosine(scaled.rate, static_cast<double>(epochs), 1e-4)));
  if (!checkpoints.empty()) {
    kolo::CheckpointCallback::Options options;
    options.files.directory = checkpoints;
    options.monitor = "val_loss";
    trainer.add<kolo::CheckpointCallback>(options);
  }
  if (!tensorboard.empty()) trainer.add<kolo::TensorBoardLogger>(tensorboard);
  trainer.add<kolo::ProgressBar>();
  trainer.fit(train, &test);

  const double accuracy = trainer.evaluate(test).at("accuracy");
  if (kolo::rank() == 0) std::printf("test accuracy %.4f\n", accuracy);
  return accuracy > (samples >= 60'000 ? 0.90 : 0.70) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--samples N", "train on N of the 60,000 samples (all)"},
                  {"--epochs N", "train for N epochs (3)"},
                  {"--checkpoints DIR", "save there, and go on from what is there"},
                  {"--tensorboard DIR", "write event files there"}});
  try {
    kolo::init();
    const int status = run(argc, argv);
    kolo::shutdown();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_conv: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

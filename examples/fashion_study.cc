// Finds a good network for Fashion-MNIST: learning rate, batch size, width and optimizer, each
// trial trained on two ranks, the hopeless ones stopped early.
//
//   build/release/bin/kolo_fashion_study [--results DIR] [--trials N] [--samples N]
//
// prints a live table, then:  best accuracy 0.86…: {"batch": …, "lr": …, "optimizer": …, "width":
// …} Run again, it goes on where it was. The data come from Debian's package dataset-fashion-mnist.
#include <kolo/torch.h>
#include <kolo/tune.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "options.h"

namespace tune = kolo::tune;

namespace {

constexpr int kEpochs = 9;
std::size_t samples = 8000;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, double rate,
                                                        std::vector<torch::Tensor> parameters) {
  if (name == "adam")
    return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                torch::optim::AdamOptions(rate / 10));
  if (name == "lamb")
    return std::make_unique<kolo::Lamb>(std::move(parameters), kolo::LambOptions(rate / 10));
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(rate).momentum(0.9));
}

/// Every rank runs this.
void train(const tune::Config& config, tune::Session& session) {
  kolo::init();
  torch::manual_seed(1);
  const double rate = config.at_path("lr").as_number();
  const auto batch = static_cast<std::size_t>(config.at_path("batch").as_integer());
  const auto width = config.at_path("width").as_integer();
  const kolo::Dataset data = kolo::load_fashion_mnist(kolo::Split::train).head(samples);
  const kolo::Dataset test = kolo::load_fashion_mnist(kolo::Split::test).head(2000);

  torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(784, width), torch::nn::ReLU(),
                            torch::nn::Linear(width, 10));
  auto inner = make_optimizer(config.at_path("optimizer").as_string(), rate * kolo::size(),
                              net->parameters());
  kolo::DistributedOptimizer optimizer(*inner, net->named_parameters());
  kolo::broadcast_parameters(*net);
  const double peak = inner->param_groups()[0].options().get_lr();
  kolo::RateScheduler warmup(
      *inner,
      kolo::schedule::warmup({.start = peak / kolo::size(), .epochs = 2},
                             kolo::schedule::constant(peak)),
      {.steps_per_epoch = kolo::steps_per_epoch(data.size(), batch, kolo::size())});
  kolo::DistributedSampler sampler(data.size());
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    sampler.set_epoch(epoch);
    while (auto chosen = sampler.next(batch)) {
      const kolo::Batch part = data.batch(*chosen);
      optimizer.zero_grad();
      torch::nll_loss(net->forward(part.inputs).log_softmax(1), part.targets).backward();
      warmup.step();
      optimizer.step();
    }
    torch::NoGradGuard no_grad;
    const auto right = net->forward(test.inputs).argmax(1).eq(test.targets);
    session.report({{"accuracy", right.to(torch::kFloat64).mean().item<double>()}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--results DIR", "keep the study there (~/kolo_results)"},
                  {"--trials N", "try N configurations (12)"},
                  {"--samples N", "train each on N samples (8000)"}});
  samples = static_cast<std::size_t>(options::number(argc, argv, "--samples", 8000));
  tune::Options how;
  how.name = "fashion";
  how.local_dir = options::text(argc, argv, "--results", "");
  how.metric = "accuracy";
  how.mode = "max";
  how.num_samples = static_cast<std::int64_t>(options::number(argc, argv, "--trials", 12));
  how.config = {{"lr", tune::loguniform(1e-3, 1.0)},
                {"batch", tune::choice({32, 64, 128})},
                {"width", tune::choice({64, 128, 256})},
                {"optimizer", tune::choice({"sgd", "adam", "lamb"})}};
  how.search_alg = {.name = "tpe", .settings = {{"n_startup", 6}}};
  how.scheduler = tune::ASHAScheduler({{"max_t", kEpochs}, {"reduction_factor", 3}});
  how.resume = tune::Resume::automatic;
  how.seed = 3;
  try {
    const auto analysis = tune::run(tune::DistributedTrainable(train, {.num_slots = 2}), how);
    const double accuracy = analysis.best_result().at_path("accuracy").as_number();
    std::printf("best accuracy %.4f: %s\nfiles in %s\n", accuracy,
                analysis.best_config().to_string().c_str(), analysis.directory().c_str());
    return accuracy > 0.75 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}

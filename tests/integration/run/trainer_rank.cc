// A Trainer whose ranks come and go, as examples/digits_elastic.cc is a loop of its own:
// trainer_rank
// [--epochs N] [--until FILE] [--pause-ms N].
#include <kolo/torch.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/hash.h"
#include "options.h"
#include "rank_main.h"

namespace {

/// Tells who is here, goes slowly, and ends the run at the end of an epoch once the file is there.
struct Witness : kolo::Callback {
  Witness(std::string file, std::chrono::milliseconds time) : until(std::move(file)), pause(time) {}
  void on_train_begin(kolo::Trainer& trainer) override { on_reset(trainer); }
  void on_reset(kolo::Trainer& trainer) override {
    std::printf("process %d is rank %d of %d from step %llu on\n", static_cast<int>(::getpid()),
                trainer.rank(), trainer.ranks(), static_cast<unsigned long long>(trainer.steps()));
    std::fflush(stdout);
  }
  void on_step(kolo::Trainer&) override { std::this_thread::sleep_for(pause); }
  void on_epoch_end(kolo::Trainer& trainer, kolo::Metrics&) override {
    const std::int32_t seen = !until.empty() && std::filesystem::exists(until) ? 1 : 0;
    if (kolo::world().allreduce(seen, kolo::ReduceOp::max) == 1) trainer.stop();
  }
  std::string until;
  std::chrono::milliseconds pause;
};

int run(int argc, char** argv) {
  const auto epochs = static_cast<std::uint64_t>(options::number(argc, argv, "--epochs", 100'000));
  torch::manual_seed(1);
  const kolo::Dataset train = kolo::load_digits(kolo::Split::train);
  const kolo::Dataset test = kolo::load_digits(kolo::Split::test);
  torch::nn::Sequential net(torch::nn::Linear(64, 40), torch::nn::BatchNorm1d(40),
                            torch::nn::ReLU(), torch::nn::Dropout(0.1), torch::nn::Linear(40, 10));
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.001));
  kolo::TrainerOptions options{.epochs = epochs, .batch_per_rank = 32, .elastic = true};
  options.distributed.virtual_ranks = 4;
  kolo::Trainer trainer(
      net.ptr(), [&](const torch::Tensor& x) { return net->forward(x.flatten(1)); },
      kolo::cross_entropy, adam, options);
  kolo::EarlyStop::Options patient;
  patient.patience = 100'000;
  trainer.metric("accuracy", kolo::accuracy)
      .add<kolo::RateCallback>(
          kolo::schedule::warmup({.start = 1e-4, .epochs = 2.5}, kolo::schedule::constant(0.001)))
      .add<kolo::EarlyStop>(patient)
      .add<Witness>(options::text(argc, argv, "--until", ""),
                    std::chrono::milliseconds(options::number(argc, argv, "--pause-ms", 0)));
  const auto history = trainer.fit(train, &test);
  if (trainer.has_left()) return EXIT_SUCCESS;

  std::uint64_t hash = 0;
  const auto add = [&](const torch::Tensor& tensor) {
    const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
    for (std::size_t i = 0; i < tensor.nbytes(); ++i) hash = kolo::hash_combine(hash, bytes[i]);
  };
  for (const torch::Tensor& parameter : net->parameters()) add(parameter);
  for (const torch::Tensor& buffer : net->buffers()) add(buffer);
  for (const kolo::Metrics& metrics : history)
    for (const auto& [name, value] : metrics) add(torch::tensor({value}, torch::kFloat64));
  if (kolo::rank() == 0)
    std::printf("%zu epochs, history and weights %016llx\n", history.size(),
                static_cast<unsigned long long>(hash));
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) { return kolo::test::rank_main("trainer_rank", run, argc, argv); }

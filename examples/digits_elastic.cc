// Learns to read handwritten digits while ranks come and go. The weights at the end do not depend
// on that, bit for bit.
//
//   kolo run -np 3 --min-np 1 build/release/bin/kolo_digits_elastic --pause-ms 50
//
// Kill one of the processes (kill -9) while it runs, and compare the last line with that of a run
// that was left alone. --epochs N trains for N epochs (5); --until FILE trains on, epoch by epoch,
// until the file is there; --pause-ms N waits before each micro-batch, as if the network were
// larger; --data fashion learns to tell clothes instead (Debian's package dataset-fashion-mnist);
// --log FILE notes the speed, for scripts/elastic_picture.py.
#include <kolo/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "options.h"

namespace {

constexpr int kVirtualRanks = 4;
constexpr std::size_t kBatch = 16;  // of a virtual rank

struct NetImpl : torch::nn::Module {
  /// For images of `side` times `side` points.
  explicit NetImpl(std::int64_t side) : side(side), fc(16 * (side / 2) * (side / 2), 10) {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(norm(conv(x.view({-1, 1, side, side})))), 2);
    return fc(torch::dropout(x.flatten(1), 0.1, is_training()));
  }
  std::int64_t side;
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
  torch::nn::BatchNorm2d norm{16};
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);

/// FNV-1a over all bytes of the network.
std::uint64_t fingerprint(const Net& net) {
  std::uint64_t hash = 14695981039346656037ULL;
  auto tensors = net->parameters();
  for (const torch::Tensor& buffer : net->buffers()) tensors.push_back(buffer);
  for (const torch::Tensor& tensor : tensors)
    for (std::size_t i = 0; i < tensor.nbytes(); ++i)
      hash = (hash ^ static_cast<const unsigned char*>(tensor.data_ptr())[i]) * 1099511628211ULL;
  return hash;
}

/// Seconds since 1970, which processes of one host agree on.
double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int run(int argc, char** argv) {
  const auto epochs = static_cast<std::uint64_t>(options::number(argc, argv, "--epochs", 5));
  const std::string until = options::text(argc, argv, "--until", "");
  const std::chrono::milliseconds pause(options::number(argc, argv, "--pause-ms", 0));
  const std::string log_path = options::text(argc, argv, "--log", "");
  torch::manual_seed(1);
  const std::string data = options::text(argc, argv, "--data", "digits");
  const bool is_fashion = data == "fashion";
  if (!is_fashion && data != "digits")
    throw std::invalid_argument("--data " + data + ": must be digits or fashion");
  const kolo::Dataset train = is_fashion ? kolo::load_fashion_mnist(kolo::Split::train)
                                         : kolo::load_digits(kolo::Split::train);
  const kolo::SamplerOptions every_sample_once{.tail = kolo::Tail::uneven, .ranks = kVirtualRanks};
  const std::uint64_t steps_per_epoch =
      kolo::steps_per_epoch(train.size(), kBatch, kVirtualRanks, kolo::Tail::uneven);

  // What lasts: the network, its optimizer, and where the training is.
  Net net(is_fashion ? 28 : 8);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::uint64_t step = 0;
  std::vector<std::int32_t> visits(train.size());
  kolo::elastic::TorchState state(*net, sgd);
  state.add(step).add(visits);

  const auto is_over = [&] {
    if (until.empty()) return step >= epochs * steps_per_epoch;
    const std::int32_t seen = std::filesystem::exists(until) ? 1 : 0;
    return kolo::world().allreduce(seen, kolo::ReduceOp::max) == 1;
  };

  const auto ending = kolo::elastic::run(state, [&](kolo::elastic::State&) {
    std::printf("process %d is rank %d of %d from step %llu on\n", static_cast<int>(::getpid()),
                kolo::rank(), kolo::size(), static_cast<unsigned long long>(step));
    std::fflush(stdout);
    // What belongs to this group of ranks.
    kolo::DistributedOptimizer optimizer(sgd, net->named_parameters(),
                                         {.virtual_ranks = kVirtualRanks});
    optimizer.average_with_each_step(net->buffers());
    optimizer.set_steps(step);
    std::ofstream log;  // whoever is rank 0 goes on with the same file
    if (kolo::rank() == 0 && !log_path.empty()) log.open(log_path, std::ios::app);
    while (step % steps_per_epoch != 0 || !is_over()) {
      std::vector<kolo::DistributedSampler> samplers;
      for (const int v : optimizer.virtual_ranks()) {
        kolo::SamplerOptions options = every_sample_once;
        options.rank = v;
        samplers.emplace_back(train.size(), options);
        samplers.back().set_epoch(step / steps_per_epoch);
        samplers.back().skip(step % steps_per_epoch * kBatch);
      }
      do {
        std::vector<std::int32_t> visited(train.size());
        for (std::size_t i = 0; i < samplers.size(); ++i) {
          std::this_thread::sleep_for(pause);
          auto micro_batch = optimizer.micro_batch(optimizer.virtual_ranks()[i]);
          const auto samples = samplers[i].next(kBatch);
          if (!samples) continue;
          const kolo::Batch batch = train.batch(*samples);
          kolo::cross_entropy(net->forward(batch.inputs), batch.targets).backward();
          for (const std::size_t sample : *samples) ++visited[sample];
        }
        kolo::world().allreduce(std::span(visited), kolo::ReduceOp::sum);
        optimizer.step();
        for (std::size_t i = 0; i < visits.size(); ++i) visits[i] += visited[i];
        ++step;
        state.commit_in_place();  // nothing can fail since step()
        log << std::fixed << now() << ' ' << kolo::size() << ' '
            << std::accumulate(visited.begin(), visited.end(), 0) << std::endl;
      } while (step % steps_per_epoch != 0);
    }
  });
  if (ending == kolo::elastic::Ending::left) return EXIT_SUCCESS;

  const auto done = static_cast<std::int32_t>(step / steps_per_epoch);
  const bool each_once =
      std::all_of(visits.begin(), visits.end(), [&](std::int32_t count) { return count == done; });
  if (kolo::rank() == 0)
    std::printf("%d epochs, every sample %s, weights %016llx\n", done,
                each_once ? "once in each" : "NOT ONCE in each",
                static_cast<unsigned long long>(fingerprint(net)));
  return each_once ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--epochs N", "train for N epochs (5)"},
                  {"--until FILE", "train on until the file is there"},
                  {"--pause-ms N", "wait before each micro-batch (0)"},
                  {"--data NAME", "digits or fashion (digits)"},
                  {"--log FILE", "note each step: time, ranks, samples"}});
  try {
    const int status = run(argc, argv);
    kolo::shutdown();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits_elastic: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

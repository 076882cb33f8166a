// What virtual ranks cost where they are the ranks, and what commits cost when nothing happens:
//   elastic_rank MODEL BATCH ROUNDS
// under kolo run --min-np (scripts/bench elastic). Rounds of steps with and without take turns in
// the same processes, so that whatever else the machine does meets both.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../examples/models.h"
#include "kolo/torch.h"
#include "support/median.h"
#include "support/ratios.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStepsOfRound = 10;

class Run {
 public:
  Run(models::Model model, torch::optim::SGD& sgd, int64_t batch, int virtual_ranks)
      : model_(std::move(model)),
        optimizer_(sgd, model_.module->named_parameters(), {.virtual_ranks = virtual_ranks}),
        batch_(model_.make_batch(batch, static_cast<uint64_t>(kolo::rank()))) {
    if (virtual_ranks > 0) optimizer_.average_with_each_step(model_.module->buffers());
  }

  using End = void (kolo::elastic::State::*)();
  /// Seconds of a step, at this rank; with a commit at its end if there is a state.
  double round(kolo::elastic::State* state = nullptr, End end = nullptr) {
    kolo::world().barrier();
    const auto begin = Clock::now();
    for (int step = 0; step < kStepsOfRound; ++step) {
      optimizer_.zero_grad();
      if (optimizer_.virtual_ranks().empty()) model_.loss(batch_).backward();
      for (const int v : optimizer_.virtual_ranks()) {
        auto micro_batch = optimizer_.micro_batch(v);
        model_.loss(batch_).backward();
      }
      optimizer_.step();
      if (state != nullptr) (state->*end)();
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / kStepsOfRound;
  }

 private:
  models::Model model_;
  kolo::DistributedOptimizer optimizer_;
  models::Batch batch_;
};

/// Medians over rounds of what `with` takes of `without`.
template <class With, class Without>
double cost(int rounds, With with, Without without) {
  with();
  without();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    // Who comes first takes turns too.
    double base = round % 2 == 0 ? without() : 0;
    const double more = with();
    if (round % 2 != 0) base = without();
    ratios.push_back(more / base);
  }
  return bench::median(ratios);
}

/// A network of its own, with its optimizer.
struct Net {
  explicit Net(const std::string& name) : model(models::make(name)) {}
  models::Model model;
  torch::optim::SGD sgd{model.module->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)};
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw std::runtime_error("usage: elastic_rank MODEL BATCH ROUNDS");
  const std::string name = argv[1];
  const std::int64_t batch = std::atoll(argv[2]);
  const int rounds = std::atoi(argv[3]);
  Net plain_net(name), shared_net(name);
  kolo::elastic::TorchState state(*plain_net.model.module, plain_net.sgd);
  kolo::elastic::run(state, [&](kolo::elastic::State&) {
    Run plain(plain_net.model, plain_net.sgd, batch, 0);
    Run shared_out(shared_net.model, shared_net.sgd, batch, kolo::size());
    const double virtual_ranks = cost(
        rounds, [&] { return shared_out.round(); }, [&] { return plain.round(); });
    using State = kolo::elastic::State;
    const double commits = cost(
        rounds, [&] { return plain.round(&state, &State::commit_in_place); },
        [&] { return plain.round(); });
    const double copies = cost(
        rounds, [&] { return plain.round(&state, &State::commit); }, [&] { return plain.round(); });
    if (kolo::rank() != 0) return;
    const std::string which = name + "_" + std::to_string(kolo::size());
    bench::Ratios ratios;
    ratios.print("virtual_ranks_cost_" + which, virtual_ranks, "<=", 1.05);
    ratios.print("elastic_commit_cost_" + which, commits, "<=", 1.01);
    std::printf("a commit that copies, %s: %.3f of a step\n", which.c_str(), copies);
  });
  kolo::shutdown();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic_rank: %s\n", error.what());
  return 1;
}

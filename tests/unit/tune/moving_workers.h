// A study on 64 nodes in simulated time, with the code that decides in real ones: how long it takes
// to its target with trials of one rank, and with ranks that move to trials which go on.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "kolo/random.h"
#include "unit/tune/simulated_study.h"

namespace kolo::test {

class MovingWorkers {
 public:
  explicit MovingWorkers(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Seconds until some trial has reached the target.
  double time_to_target(const std::string& name, bool moves, std::uint64_t seed) {
    tune::Options options;
    options.name = name;
    options.metric = "loss";
    options.mode = "min";
    options.config = {{"quality", tune::uniform(0.0, 1.0)}};
    options.num_samples = kTrials;
    options.seed = seed;
    options.scheduler =
        tune::ASHAScheduler({{"max_t", kEpochs}, {"grace_period", 3}, {"reduction_factor", 3}});
    options.total_resources = tune::Resources{.cpu = kNodes};
    options.local_dir = directory_.string();
    options.storage = (directory_ / "kolo.db").string();
    options.loggers = {};
    options.verbose = 0;
    if (moves) {
      options.resources_per_trial.ranks = {1, 8};
      options.scheduler.settings.emplace("reuse_workers", true);
    }
    Simulation simulation;
    const auto began = simulation.clock.now();
    double reached = std::numeric_limits<double>::infinity();
    Behaviour behaviour;
    behaviour.step = [&](const tune::Value& config, double&, std::int64_t epoch) {
      // A loss that falls to what the configuration is worth. Only the best come to the target, and
      // late.
      const double worth = 0.05 + config.at_path("quality").as_number();
      const double loss = worth + std::exp(-static_cast<double>(epoch) / 12);
      const double now = std::chrono::duration<double>(simulation.clock.now() - began).count();
      if (loss <= kTarget) reached = std::min(reached, now);
      return tune::Value{{"loss", loss}};
    };
    // Epochs of ten minutes; some configurations take three times as long as others.
    behaviour.step_seconds = [seed](std::int64_t trial) {
      Random random = Random(seed).stream("epoch", static_cast<std::uint64_t>(trial));
      return 600 * std::exp(0.35 * random.normal());
    };
    // What Horovod's rings lose and more: nine tenths of each doubling.
    behaviour.speed = [](int ranks) { return std::pow(1.8, std::log2(ranks)); };
    behaviour.change_seconds = 2;
    behaviour.saves = Behaviour::Saves::never;
    behaviour.last_iteration = kEpochs;
    simulation.run(options, behaviour);
    return reached;
  }

 private:
  static constexpr int kNodes = 64, kTrials = 128, kEpochs = 81;
  static constexpr double kTarget = 0.075;
  std::filesystem::path directory_;
};

}  // namespace kolo::test

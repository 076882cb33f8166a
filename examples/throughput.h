// How many samples a second a network trains on, with made-up data.
#pragma once

#include <kolo/torch.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "models.h"

namespace throughput {

struct Plan {
  int64_t batch = 16;
  int warmup_steps = 3;
  int rounds = 10;  ///< each gives one number
  int steps_per_round = 3;
  kolo::ProcessSetId ranks = kolo::kGlobalProcessSet;
};

struct Rate {
  double mean = 0, deviation = 0;  ///< samples a second of one rank, over the rounds
};

/// Collective over plan.ranks.
inline Rate measure(models::Model& model, const Plan& plan) {
  torch::optim::SGD sgd(model.module->parameters(), 0.01);
  kolo::CollectiveOptions among;
  among.process_set = plan.ranks;
  kolo::broadcast_parameters(*model.module, 0, among);
  kolo::DistributedOptimizerOptions options;
  options.process_set = plan.ranks;
  kolo::DistributedOptimizer optimizer(sgd, model.module->named_parameters(), options);
  const models::Batch batch = model.make_batch(plan.batch, 1 + static_cast<uint64_t>(kolo::rank()));
  auto step = [&] {
    optimizer.zero_grad();
    model.loss(batch).backward();
    optimizer.step();
  };
  for (int i = 0; i < plan.warmup_steps; ++i) step();

  std::vector<double> rates;
  for (int round = 0; round < plan.rounds; ++round) {
    kolo::engine().barrier(plan.ranks);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < plan.steps_per_round; ++i) step();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(plan.batch * plan.steps_per_round) / seconds.count());
  }
  Rate rate;
  for (double each : rates) rate.mean += each / static_cast<double>(rates.size());
  for (double each : rates)
    rate.deviation += (each - rate.mean) * (each - rate.mean) / static_cast<double>(rates.size());
  rate.deviation = std::sqrt(rate.deviation);
  return rate;
}

}  // namespace throughput

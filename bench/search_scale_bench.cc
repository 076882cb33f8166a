// Whether one sampler keeps thousands of workers busy: `scripts/bench search-scale`.
//
//   search_scale_bench [--quick] [--json FILE]
//
// Discrete events: workers evaluate Ackley-5 for max(0, N(60, 20²)) seconds of simulated time; the
// one search process tells what has ended since it last looked, asks for as many new points, and
// both take as long as they really take here. Nothing else is simulated: a worker waits from the
// end of its evaluation until the answer.
//
// Utilisation: from the start of the simulation until the search has answered for the last
// evaluation that counts, the share of the workers' time (workers × simulated time) in which they
// evaluate. Of evaluations that still run at that moment only the part before it counts.
//
// Regret: W workers that get 1.5 N evaluations shall come as near to the optimum as 64 workers that
// get N. A worker's first evaluations are spent before anything is known, so N gives each of the W
// at least ten (W · 10 / 1.5, printed as N). Geometric mean of the ratio over seeds, where a regret
// below 1e-8 (the final target of the COCO benchmarks) counts as that: the optimum is found, and
// what is left is rounding. Both runs go on at the same time, each on a core.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <limits>
#include <memory>
#include <numbers>
#include <queue>
#include <string>
#include <vector>

#include "kolo/random.h"
#include "kolo/search.h"
#include "support/ratios.h"

namespace {

using kolo::Random;
using namespace kolo::search;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ackley(const Point& x) {
  double squares = 0.0, waves = 0.0;
  for (const double v : x) {
    squares += v * v / static_cast<double>(x.size());
    waves += std::cos(2.0 * std::numbers::pi * v) / static_cast<double>(x.size());
  }
  return -20.0 * std::exp(-0.2 * std::sqrt(squares)) - std::exp(waves) + 20.0 + std::numbers::e;
}

std::shared_ptr<const Space> ackley_space() {
  Space::Builder builder;
  for (int i = 0; i < 5; ++i) builder.add("x" + std::to_string(i), uniform(-32.768, 32.768));
  return builder.build();
}

constexpr double kSolved = 1e-8;
constexpr std::size_t kGenerations = 10;  // evaluations per worker when regrets are compared

struct Running {
  double end;
  std::uint64_t id;
  double value;
  bool operator>(const Running& other) const { return end > other.end; }
};

struct Outcomes {
  double utilisation = 0.0;
  double longest_cycle = 0.0;   // of the search process, in seconds
  double search_seconds = 0.0;  // real time in ask and tell
  std::vector<double> best;     // after each evaluation
};

Outcomes simulate(std::size_t workers, std::size_t evaluations, std::uint64_t seed) {
  auto sampler = make_sampler("forest", ackley_space(), {.seed = seed});
  Random durations = Random(seed).stream("durations");
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  Outcomes outcomes;
  double now = 0.0, busy = 0.0, best = std::numeric_limits<double>::infinity();
  std::uint64_t next_id = 0;

  auto start_trials = [&](std::size_t count) {
    std::vector<TrialId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(TrialId{next_id + i});
    const double before = seconds();
    const auto points = sampler->ask(ids);
    const double took = seconds() - before;
    now += took;
    outcomes.search_seconds += took;
    for (const auto& point : points) {
      const double duration = std::max(0.0, 60.0 + 20.0 * durations.normal());
      busy += duration;
      running.push({now + duration, next_id++, ackley(*point)});
    }
    return took;
  };
  start_trials(workers);
  double last_start = now, total_at_last_start = 0.0;
  while (outcomes.best.size() < evaluations) {
    now = std::max(now, running.top().end);
    std::size_t ended = 0;
    const double before = seconds();
    while (!running.empty() && running.top().end <= now && outcomes.best.size() < evaluations) {
      const Running trial = running.top();
      running.pop();
      sampler->tell(TrialId{trial.id}, Outcome::complete(trial.value));
      best = std::min(best, trial.value);
      outcomes.best.push_back(best);
      ++ended;
    }
    const double telling = seconds() - before;
    now += telling;
    outcomes.search_seconds += telling;
    const double cycle = telling + start_trials(ended);
    outcomes.longest_cycle = std::max(outcomes.longest_cycle, cycle);
    last_start = now;
    // What is still running has been counted as busy beyond this moment.
    if (outcomes.best.size() >= evaluations) {
      double ahead = 0.0;
      for (auto rest = running; !rest.empty(); rest.pop())
        ahead += std::max(0.0, rest.top().end - last_start);
      total_at_last_start = busy - ahead;
    }
  }
  outcomes.utilisation = total_at_last_start / (last_start * static_cast<double>(workers));
  return outcomes;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else {
      std::fprintf(stderr, "search_scale_bench: unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  bench::Ratios ratios;
  auto ratio = [&](const std::string& name, double value, const char* op, double goal) {
    ratios.print(name, value, op, goal);
  };
  auto show = [](std::size_t workers, std::uint64_t seed, const Outcomes& run) {
    std::printf(
        "%6zu workers, seed %zu: utilisation %.4f, regret %.3g after %zu evaluations, search %.1f "
        "s of real time, longest cycle %.3f s\n",
        workers, static_cast<std::size_t>(seed), run.utilisation, run.best.back(), run.best.size(),
        run.search_seconds, run.longest_cycle);
    std::fflush(stdout);
  };
  struct Size {
    std::size_t workers;
    std::uint64_t seeds;  // for regret; 0: utilisation alone, a little over one generation
  };
  const std::vector<Size> sizes = quick ? std::vector<Size>{{1024, 1}, {4096, 0}, {10'000, 0}}
                                        : std::vector<Size>{{1024, 5}, {4096, 2}, {10'000, 1}};
  for (const auto& [workers, seeds] : sizes) {
    const std::size_t few = kGenerations * workers * 2 / 3, many = few * 3 / 2;
    double utilisation = 1.0, log_ratio = 0.0;
    if (seeds == 0) {
      const Outcomes run = simulate(workers, workers * 5 / 4, 0);
      show(workers, 0, run);
      utilisation = run.utilisation;
    } else {
      std::printf("N = %zu: 64 workers get N evaluations, %zu workers 1.5 N\n", few, workers);
    }
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      auto other = std::async(std::launch::async, simulate, 64, few, seed);
      const Outcomes run = simulate(workers, many, seed), reference = other.get();
      show(64, seed, reference);
      show(workers, seed, run);
      utilisation = std::min(utilisation, run.utilisation);
      log_ratio +=
          std::log(std::max(run.best.back(), kSolved) / std::max(reference.best.back(), kSolved)) /
          static_cast<double>(seeds);
    }
    ratio("ambs_utilisation_" + std::to_string(workers), utilisation, ">=", 0.95);
    if (seeds > 0)
      ratio("ambs_regret_" + std::to_string(workers) + "_vs_64", std::exp(log_ratio), "<=", 1.0);
  }
  ratios.write_json(json);
  return 0;
}

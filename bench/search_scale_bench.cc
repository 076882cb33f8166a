// Whether one sampler keeps thousands of workers busy: `scripts/bench search-scale`.
//
//   search_scale_bench [--quick] [--json FILE]
//
// Discrete events: workers evaluate Ackley-5 for max(0, N(60, 20²)) seconds of simulated time; the
// one search process tells what has ended since it last looked, asks for as many new points, and
// both take as long as they really take here. Nothing else is simulated: a worker waits from the
// end of its evaluation until the answer. Utilisation is the share of all workers' time spent
// evaluating, from the first start to the end of the last started evaluation's average.
//
// Regret is compared at equal numbers of evaluations with a run of 64 workers, asked one result at
// a time: no worse than 1.5 times its regret.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <numbers>
#include <queue>
#include <string>
#include <vector>

#include "base/random.h"
#include "kolo/search.h"

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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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
  std::string lines;
  auto ratio = [&](const std::string& name, double value, const char* op, double goal) {
    const bool pass = op[0] == '<' ? value <= goal : value >= goal;
    std::printf("RATIO %s %.4g goal %s%g %s\n", name.c_str(), value, op, goal,
                pass ? "PASS" : "FALLS-SHORT");
    std::fflush(stdout);
    lines += (lines.empty() ? "  \"" : ",\n  \"") + name + "\": " + std::to_string(value);
  };
  const std::size_t seeds = quick ? 1 : 3;
  auto show = [](std::size_t workers, const Outcomes& run) {
    std::printf(
        "%6zu workers: utilisation %.4f, regret %.3g, search %.1f s of real time, longest cycle "
        "%.3f s\n",
        workers, run.utilisation, run.best.back(), run.search_seconds, run.longest_cycle);
    std::fflush(stdout);
  };
  // Each worker gets a few evaluations: the first, at random, before anything is known, and others.
  const std::vector<std::pair<std::size_t, std::size_t>> sizes = {
      {1024, 4 * 1024}, {4096, 3 * 4096}, {10'000, 20'000}};
  std::vector<std::vector<double>> few;  // bests of the runs with 64 workers
  const std::size_t compared = sizes[0].second;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Outcomes run = simulate(64, compared, seed);
    show(64, run);
    few.push_back(std::move(run.best));
  }
  for (const auto& [workers, evaluations] : sizes) {
    std::vector<double> ratios, utilisation;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Outcomes run = simulate(workers, evaluations, seed);
      show(workers, run);
      utilisation.push_back(run.utilisation);
      // At as many evaluations as the run with 64 workers had, and half as many more.
      const std::size_t at = std::min(evaluations, compared * 3 / 2);
      ratios.push_back(run.best[at - 1] / few[seed][at * 2 / 3 - 1]);
    }
    ratio("ambs_utilisation_" + std::to_string(workers), median(utilisation), ">=", 0.95);
    ratio("ambs_regret_" + std::to_string(workers) + "_vs_64", median(ratios), "<=", 1.0);
  }
  if (!json.empty()) std::ofstream(json) << "{\n" << lines << "\n}\n";
  return 0;
}

// How good the searches for architectures are: `scripts/bench nas-quality`.
//
//   nas_quality_bench [--data DIR] [--quick] [--json FILE]
//
// regevo, ppo and agebo on the table of NAS-Bench-201 (format kolo-hpo-table-1, 15,625
// architectures with six choices of five operations), ambs on a sum of squares. Searches are what
// the command line gives by default: the population of regevo is a tenth of the budget.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kolo/error.h"
#include "kolo/nas/ppo.h"
#include "quality/problem.h"
#include "quality/runs.h"
#include "support/arguments.h"
#include "support/ratios.h"

namespace {

using bench::Problem;
using bench::Ratios;
using namespace kolo::search;

/// The best of `evaluations` by one worker, as a loss above the optimum.
double regret_of(const Problem& problem, Sampler& sampler, std::size_t evaluations) {
  const double sign = problem.direction == Direction::minimize ? 1 : -1;
  double best = INFINITY;
  for (std::uint64_t i = 0; i < evaluations; ++i) {
    const Point point = *sampler.ask(TrialId{i});
    const double value = problem.evaluate(point);
    best = std::min(best, sign * (value - problem.optimum));
    sampler.tell(TrialId{i}, Outcome::complete(value));
  }
  return best;
}

using MakeSampler = std::function<std::unique_ptr<Sampler>(const Problem&, SamplerOptions)>;

MakeSampler by_name(std::string name, std::map<std::string, Value> settings = {}) {
  return [=](const Problem& problem, SamplerOptions options) {
    options.settings = settings;
    return make_sampler(name, problem.space, std::move(options));
  };
}

std::unique_ptr<Sampler> make_ppo(const Problem& problem, SamplerOptions options) {
  return kolo::nas::make_ppo_sampler(problem.space, std::move(options));
}

std::vector<double> regrets(const Problem& problem, const MakeSampler& make, std::size_t seeds,
                            std::size_t evaluations) {
  std::vector<double> found(seeds);
  bench::in_parallel(seeds, [&](std::size_t seed) {
    const auto sampler =
        make(problem, {.directions = {problem.direction}, .seed = seed, .budget = evaluations});
    found[seed] = regret_of(problem, *sampler, evaluations);
  });
  return found;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value / static_cast<double>(values.size());
  return sum;
}

double share_of_zeros(const std::vector<double>& values) {
  return static_cast<double>(
             std::count_if(values.begin(), values.end(), [](double value) { return value <= 0; })) /
         static_cast<double>(values.size());
}

/// The chance of such small values on the left if both sides came from one distribution: the test
/// of Mann and Whitney, one-sided, by its normal approximation with ties and continuity corrected.
double mann_whitney_p(const std::vector<double>& left, const std::vector<double>& right) {
  double wins = 0;
  for (const double l : left)
    for (const double r : right) wins += l < r ? 1 : l == r ? 0.5 : 0;
  std::vector<double> all = left;
  all.insert(all.end(), right.begin(), right.end());
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  double ties = 0;
  for (auto at = all.begin(); at != all.end();) {
    const auto next = std::upper_bound(at, all.end(), *at);
    const auto equal = static_cast<double>(next - at);
    ties += equal * (equal * equal - 1);
    at = next;
  }
  const double pairs = static_cast<double>(left.size()) * static_cast<double>(right.size());
  const double variance = pairs / 12 * (n + 1 - ties / (n * (n - 1)));
  return 0.5 * std::erfc((wins - pairs / 2 - 0.5) / std::sqrt(2 * variance));
}

void show(const char* name, const std::vector<double>& found, std::size_t evaluations) {
  std::printf("%-28s mean regret %-10.4g after %zu evaluations, optimum found in %3.0f %% of %zu\n",
              name, mean(found), evaluations, 100 * share_of_zeros(found), found.size());
  std::fflush(stdout);
}

/// The table with hyperparameters beside it: an accuracy counts less the farther the training is
/// from a rate of 0.01 and the second batch size, for every architecture.
Problem with_hyperparameters(const Problem& table) {
  Problem joint = table;
  Space::Builder builder;
  for (const Parameter& parameter : table.space->parameters())
    builder.add("arch_seq/" + parameter.path, choice(parameter.choices));
  joint.space = builder.add("batch_size", ordinal({32, 64, 128, 256}))
                    .add("learning_rate", loguniform(1e-4, 1))
                    .build();
  const std::size_t batch = joint.space->index_of("batch_size");
  const std::size_t rate = joint.space->index_of("learning_rate");
  joint.evaluate = [=, evaluate = table.evaluate](const Point& point) {
    const Point architecture(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(batch));
    const double far = std::log10(point[rate]) + 2;
    return evaluate(architecture) - 2 * far * far - std::abs(point[batch] - 1);
  };
  return joint;
}

void measure_table(const Problem& table, bool quick, Ratios& ratios) {
  const std::size_t few = quick ? 30 : 100, more = quick ? 20 : 40;
  const auto evolved = regrets(table, by_name("evolution"), few, 200);
  show("regevo (20, samples of 18)", evolved, 200);
  show("random", regrets(table, by_name("random"), few, 200), 200);
  ratios.print("regevo_found_200", share_of_zeros(evolved), ">=", 0.8);

  const auto learned = regrets(table, make_ppo, more, 300);
  const auto drawn = regrets(table, by_name("random"), more, 300);
  show("ppo", learned, 300);
  show("random", drawn, 300);
  ratios.print("ppo_vs_random_p", mann_whitney_p(learned, drawn), "<=", 0.01);

  const Problem joint = with_hyperparameters(table);
  const auto both = regrets(joint, by_name("agebo"), more, 200);
  const auto mixed = regrets(joint, by_name("evolution"), more, 200);
  const auto chance = regrets(joint, by_name("random"), more, 200);
  show("agebo, 2 hyperparameters", both, 200);
  show("regevomixed", mixed, 200);
  show("random", chance, 200);
  ratios.print("agebo_vs_random_p", mann_whitney_p(both, chance), "<=", 0.01);
}

/// DeepHyper's polynome2: the sum of ten squares in ±10, from the corner where all are 10.
Problem polynome2() {
  Problem problem;
  problem.name = "polynome2";
  problem.direction = Direction::maximize;
  Space::Builder builder;
  Value::Dict corner;
  for (int i = 0; i < 10; ++i) {
    builder.add("e" + std::to_string(i), real(-10, 10));
    corner["e" + std::to_string(i)] = 10.0;
  }
  problem.space = builder.starting_point(Value(corner)).build();
  problem.evaluate = [](const Point& point) {
    double sum = 0;
    for (const double x : point) sum -= x * x;
    return sum;
  };
  return problem;
}

void measure_ambs(Ratios& ratios) {
  const Problem problem = polynome2();
  constexpr std::size_t kSeeds = 30;
  const auto random = regrets(problem, by_name("random"), kSeeds, 200);
  const auto wins = [&](const std::vector<double>& found) {
    int count = 0;
    for (std::size_t seed = 0; seed < kSeeds; ++seed) count += found[seed] < random[seed];
    return count;
  };
  const auto usual = regrets(problem, by_name("forest"), kSeeds, 200);
  const auto reference = regrets(problem,
                                 by_name("forest", {{"surrogate_model", "RF"},
                                                    {"acq_func", "UCB"},
                                                    {"kappa", 1.96},
                                                    {"xi", 0.001},
                                                    {"scheduler", "constant"},
                                                    {"multi_point_strategy", "cl_min"}}),
                                 kSeeds, 200);
  show("ambs on polynome2", usual, 200);
  show("ambs, DeepHyper's settings", reference, 200);
  show("random", random, 200);
  ratios.print("ambs_polynome2_wins", wins(usual), ">=", kSeeds);
  ratios.print("ambs_reference_polynome2_wins", wins(reference), ">=", kSeeds);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, "nas_quality_bench", {"json", "data"});
  const bool quick = arguments.quick();
  const std::string& data = arguments["data"];
  try {
    Ratios ratios;
    measure_ambs(ratios);
    bool found = false;
    if (!data.empty())
      for (const Problem& problem : bench::read_tables(data)) {
        if (problem.name != "nasbench201_cifar10") continue;
        found = true;
        measure_table(problem, quick, ratios);
      }
    if (!found) std::printf("MISSING the table nasbench201_cifar10 (--data DIR)\n");
    ratios.write_json(arguments["json"]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nas_quality_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}

// How fast the samplers and schedulers are: `scripts/bench search`.
//
//   search_speed_bench [--quick] [--json FILE] [--only NAME,…] [--optuna COMMAND]
//
// One row per figure: a name, a function that measures it, and its goal. Each function checks that
// what it times gives sensible answers. Adding a row is a function and a line in kRows.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kolo/random.h"
#include "kolo/search.h"
#include "speed/rows.h"
#include "support/arguments.h"
#include "support/median.h"
#include "support/ratios.h"

namespace {

using bench::SpeedOptions;
using kolo::Random;
using namespace kolo::search;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "search_speed_bench: %s\n", what);
  std::exit(1);
}

std::shared_ptr<const Space> floats(int count) {
  Space::Builder builder;
  for (int i = 0; i < count; ++i) builder.add("x" + std::to_string(i), uniform(0, 1));
  return builder.build();
}

/// A smooth valley with some interaction; the optimum is at 0.3.
double valley(const Point& point) {
  double sum = 0.0;
  for (const double x : point)
    sum += (x - 0.3) * (x - 0.3) * (1.0 + 0.5 * std::cos(3.0 * point[0]));
  return sum;
}

void add_random_results(Sampler& sampler, int count) {
  Random random(1);
  for (int i = 0; i < count; ++i) {
    Point point = sampler.space().sample(random);
    const double value = valley(point);
    sampler.add(std::move(point), Outcome::complete(value));
  }
}

/// One ask with 1,000 results in 20 dimensions, learning the model's parameters included.
double gp_ask_n1000_d20_ms(const SpeedOptions& options) {
  std::vector<double> times;
  for (int repeat = 0; repeat < (options.quick ? 3 : 7); ++repeat) {
    // With this setting the parameters are learned at 889 results and again at 1,000.
    auto sampler = make_sampler("gp", floats(20),
                                {.seed = static_cast<std::uint64_t>(repeat),
                                 .settings = {{"n_initial_points", Value(889)}}});
    add_random_results(*sampler, 999);
    const Point last = *sampler->ask(TrialId{0});
    sampler->tell(TrialId{0}, Outcome::complete(valley(last)));
    const double start = seconds();
    const Point next = *sampler->ask(TrialId{1});
    times.push_back(1e3 * (seconds() - start));
    expect(valley(next) < 1.0, "gp proposes a point no better than chance");
  }
  return bench::median(times);
}

/// Fit and 64 points with 5,000 results in 20 dimensions.
double forest_batch64_n5000_ms(const SpeedOptions& options) {
  std::vector<double> times;
  for (int repeat = 0; repeat < (options.quick ? 3 : 7); ++repeat) {
    auto sampler = make_sampler("forest", floats(20), {.seed = static_cast<std::uint64_t>(repeat)});
    add_random_results(*sampler, 5000);
    std::vector<TrialId> ids;
    for (std::uint64_t i = 0; i < 64; ++i) ids.push_back(TrialId{i});
    const double start = seconds();
    const auto points = sampler->ask(ids);
    times.push_back(1e3 * (seconds() - start));
    double mean = 0.0;
    for (const auto& point : points) mean += valley(*point) / 64.0;
    expect(mean < 1.6, "forest proposes points no better than chance");
  }
  return bench::median(times);
}

/// 100,000 times ask and tell in 40 dimensions.
double cmaes_100k_d40_s(const SpeedOptions& /*options*/) {
  auto sampler = make_sampler("cmaes", floats(40));
  double best = std::numeric_limits<double>::infinity();
  const double start = seconds();
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const Point point = *sampler->ask(TrialId{i});
    const double value = valley(point);
    best = std::min(best, value);
    sampler->tell(TrialId{i}, Outcome::complete(value));
  }
  const double took = seconds() - start;
  expect(best < 1e-9, "cmaes does not converge");
  return took;
}

struct Row {
  const char* name;
  double (*measure)(const SpeedOptions& options);
  const char* op;  // "<=" or ">="
  double goal;
};

constexpr Row kRows[] = {
    {"tpe_200x40_vs_optuna", bench::tpe_200x40_vs_optuna, "<=", 0.002},
    {"tpe_1000x40_s", bench::tpe_1000x40_s, "<=", 0.2},
    {"tpe_ask_growth", bench::tpe_ask_growth, "<=", 4.0},
    {"gp_ask_n1000_d20_ms", gp_ask_n1000_d20_ms, "<=", 100.0},
    {"forest_batch64_n5000_ms", forest_batch64_n5000_ms, "<=", 100.0},
    {"cmaes_100k_d40_s", cmaes_100k_d40_s, "<=", 3.0},
    {"asha_reports_per_s", bench::asha_reports_per_s, ">=", 1e6},
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, "search_speed_bench", {"json", "optuna", "only"});
  SpeedOptions options;
  options.quick = arguments.quick();
  options.optuna = arguments["optuna"];
  bench::Ratios ratios;
  for (const Row& row : kRows)
    if (bench::is_wanted(row.name, arguments["only"]))
      ratios.print(row.name, row.measure(options), row.op, row.goal);
  ratios.write_json(arguments["json"]);
  return 0;
}

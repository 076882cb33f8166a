// Times of TPE on the sum of squares in a box of floats, in memory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "kolo/random.h"
#include "kolo/search.h"
#include "speed/rows.h"
#include "support/median.h"

namespace bench {
namespace {

namespace search = kolo::search;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<const search::Space> box(int dimensions) {
  search::Space::Builder builder;
  for (int i = 0; i < dimensions; ++i)
    builder.add(fmt::format("x{:02}", i), search::uniform(-5, 5));
  return builder.build();
}

double squares(const search::Point& point) {
  double sum = 0;
  for (double x : point) sum += x * x;
  return sum;
}

bool has(std::string_view sampler) {
  for (const auto& info : search::samplers())
    if (info.name == sampler) return true;
  std::printf("MISSING sampler %s\n", std::string(sampler).c_str());
  return false;
}

double seconds(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// `trials` asks and tells, median of `runs` searches. The best must be better than chance.
double search_time(const char* sampler, int trials, int dimensions, int runs) {
  auto space = box(dimensions);
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    double best = INFINITY;
    times.push_back(seconds([&] {
      auto search = search::make_sampler(sampler, space, {.seed = static_cast<std::uint64_t>(run)});
      for (int i = 0; i < trials; ++i) {
        search::TrialId id{static_cast<std::uint64_t>(i)};
        auto point = search->ask(id);
        double value = squares(*point);
        best = std::min(best, value);
        search->tell(id, search::Outcome::complete(value));
      }
    }));
    // 8.33 per dimension is what one draw has on average.
    if (!(best < 8.0 * dimensions)) std::printf("FAILED %s: found %g only\n", sampler, best);
  }
  return median(times);
}

/// A sampler that knows `count` results.
std::unique_ptr<search::Sampler> taught(const char* sampler,
                                        const std::shared_ptr<const search::Space>& space,
                                        int count) {
  auto search = search::make_sampler(sampler, space, {.seed = 1});
  kolo::Random random(5);
  for (int i = 0; i < count; ++i) {
    auto point = space->sample(random);
    double value = squares(point);
    search->add(std::move(point), search::Outcome::complete(value));
  }
  return search;
}

/// Median time of one ask for `batch` points, of several with a tell in between.
double ask_time(search::Sampler& search, std::size_t batch, int runs) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    std::vector<search::TrialId> ids;
    for (std::size_t i = 0; i < batch; ++i)
      ids.push_back(search::TrialId{static_cast<std::uint64_t>(run) * batch + i});
    std::vector<std::optional<search::Point>> points;
    times.push_back(seconds([&] { points = search.ask(ids); }));
    for (std::size_t i = 0; i < batch; ++i)
      search.tell(ids[i], search::Outcome::complete(squares(*points[i])));
  }
  return median(times);
}

double optuna_seconds(const SpeedOptions& options, int trials, int dimensions) {
  if (options.optuna.empty()) return kNan;
  std::string command =
      fmt::format("{} speed --trials {} --dimensions {}", options.optuna, trials, dimensions);
  FILE* pipe = popen(command.c_str(), "r");
  double took = kNan;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &took) != 1) took = kNan;
  if (pipe != nullptr) pclose(pipe);
  if (std::isnan(took)) std::printf("MISSING Optuna: '%s' failed\n", command.c_str());
  return took;
}

}  // namespace

double tpe_200x40_vs_optuna(const SpeedOptions& options) {
  if (!has("tpe")) return kNan;
  double mine = search_time("tpe", 200, 40, options.quick ? 5 : 9);
  double theirs = optuna_seconds(options, 200, 40);
  std::printf("tpe, 200 trials of 40 floats: kolo %.4g s, Optuna %.4g s\n", mine, theirs);
  return mine / theirs;
}

double tpe_1000x40_s(const SpeedOptions& options) {
  return has("tpe") ? search_time("tpe", 1000, 40, options.quick ? 3 : 7) : kNan;
}

double tpe_ask_growth(const SpeedOptions& options) {
  if (!has("tpe")) return kNan;
  auto space = box(40);
  int runs = options.quick ? 51 : 201;
  double few = ask_time(*taught("tpe", space, 1000), 1, runs);
  double many = ask_time(*taught("tpe", space, 100'000), 1, runs);
  std::printf("tpe, one ask: %.4g ms after 1,000 trials, %.4g ms after 100,000\n", 1e3 * few,
              1e3 * many);
  return many / few;
}

}  // namespace bench

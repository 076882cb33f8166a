// How fast the machinery of architecture search is: `scripts/bench nas`.
//
//   nas_bench [--quick] [--json FILE] [--only NAME,…]
//
// One thread. Each function checks that what it times does what it should.
#include <time.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "driver/report.h"
#include "kolo/nas/spaces.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "kolo/torch/threads.h"
#include "nas/ppo/ppo.h"
#include "support/arguments.h"
#include "support/median.h"
#include "support/ratios.h"

namespace {

using kolo::Random;
using namespace kolo;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of this thread: without what others took away from it.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "nas_bench: %s\n", what);
  std::exit(1);
}

std::shared_ptr<nas::KSearchSpace> ten_layers() {
  return nas::dense_skip_co({{10}}, {{1}}, search::Value{{"regression", true}});
}

std::vector<std::uint32_t> choices_of_ten_layers() {
  std::vector<std::uint32_t> choices;
  for (const std::int64_t count : ten_layers()->choices())
    choices.push_back(static_cast<std::uint32_t>(count));
  expect(choices.size() == 37, "DenseSkipCo(10) has not 37 choices");
  return choices;
}

/// One update of PPO from ten episodes of 37 steps, with everything as it is by default.
double policy_update_ms(bool quick) {
  nas::PpoOptions options;
  nas::Learner learner(options, choices_of_ten_layers(), 1);
  Random random(2);
  const auto zeros = [](const std::vector<std::uint32_t>& actions) {
    return static_cast<double>(std::count(actions.begin(), actions.end(), 0U)) / 37.0;
  };
  std::vector<double> times, processor_times;
  double early = 0, late = 0;
  const int updates = quick ? 20 : 60;
  for (int update = 0; update < updates; ++update) {
    std::vector<nas::Episode> episodes(10);
    for (nas::Episode& episode : episodes) {
      episode.actions = learner.draw(random);
      episode.reward = 4 * zeros(episode.actions);  // the policy shall learn to do nothing
      if (update < 3) early += zeros(episode.actions) / 30;
      if (update >= updates - 3) late += zeros(episode.actions) / 30;
    }
    const double start = seconds(), processor_start = processor_seconds();
    learner.update(episodes, 1.0, Random(static_cast<std::uint64_t>(update)));
    times.push_back(1e3 * (seconds() - start));
    processor_times.push_back(1e3 * (processor_seconds() - processor_start));
  }
  expect(late > early, "the policy does not learn");
  std::printf(
      "  one update: median %.1f ms, of which the processor worked %.1f ms; fastest %.1f ms\n",
      bench::median(times), bench::median(processor_times),
      *std::min_element(times.begin(), times.end()));
  return bench::median(times);
}

/// Children that a full population of 100 gives, samples of 10: ask and tell together.
double evo_children_per_s(bool quick) {
  search::Space::Builder builder;
  search::Spec::List nodes;
  for (const std::uint32_t count : choices_of_ten_layers()) {
    std::vector<search::Value> operations;
    for (std::uint32_t k = 0; k < count; ++k) operations.emplace_back(k);
    nodes.emplace_back(search::choice(std::move(operations)));
  }
  const auto space = builder.add("arch_seq", search::Spec(std::move(nodes))).build();
  std::vector<double> rates;
  for (std::uint64_t repeat = 0; repeat < (quick ? 3 : 7); ++repeat) {
    const auto sampler = search::make_sampler(
        "evolution", space, {.seed = repeat, .settings = {{"population", 100}, {"sample", 10}}});
    double first = 0, last = 0;
    const std::uint64_t children = quick ? 20'000 : 100'000;
    double start = 0;
    for (std::uint64_t i = 0; i < 100 + children; ++i) {
      if (i == 100) start = seconds();
      const search::Point point = *sampler->ask(search::TrialId{i});
      double sum = 0;
      for (const double entry : point) sum += entry;
      if (i < 100) first += sum / 100;
      if (i >= children) last += sum / 100;
      sampler->tell(search::TrialId{i}, search::Outcome::complete(sum));
    }
    rates.push_back(static_cast<double>(children) / (seconds() - start));
    expect(last < first / 2, "evolution does not get better");
  }
  return bench::median(rates);
}

/// An architecture of DenseSkipCo(10) becomes a module with all its weights.
double model_build_ms(bool quick) {
  const auto space = ten_layers();
  const auto choices = choices_of_ten_layers();
  Random random(3);
  std::vector<double> times;
  for (int build = 0; build < (quick ? 50 : 300); ++build) {
    std::vector<std::int64_t> architecture;
    for (const std::uint32_t count : choices)
      architecture.push_back(static_cast<std::int64_t>(random.below(count)));
    const double start = seconds();
    const auto model = space->model(architecture);
    times.push_back(1e3 * (seconds() - start));
    const auto outputs = model->forward({torch::zeros({2, 10})});
    expect(outputs.size() == 1 && outputs[0].sizes() == at::IntArrayRef({2, 1}),
           "a model has not the output that was asked for");
  }
  return bench::median(times);
}

struct Row {
  const char* name;
  double (*measure)(bool quick);
  const char* op;
  double goal;
};

constexpr Row kRows[] = {
    {"policy_update_ms", policy_update_ms, "<=", 50},
    {"evo_children_per_s", evo_children_per_s, ">=", 100'000},
    {"model_build_ms", model_build_ms, "<=", 5},
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, "nas_bench", {"json", "only"});
  bench::warn_if_busy();
  kolo::set_compute_threads(1);
  bench::Ratios ratios;
  for (const Row& row : kRows)
    if (bench::is_wanted(row.name, arguments["only"]))
      ratios.print(row.name, row.measure(arguments.quick()), row.op, row.goal);
  ratios.write_json(arguments["json"]);
  return 0;
}

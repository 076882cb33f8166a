// Decisions of ASHA per second while 10,000 trials are live.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

#include "kolo/random.h"
#include "kolo/search.h"
#include "speed/rows.h"

namespace bench {
namespace {

namespace search = kolo::search;

/// The rule by definition: sorts at each report.
class SlowAsha {
 public:
  bool stops(std::uint64_t trial, double time, double value) {
    if (time >= 100) return true;
    for (double milestone : {64.0, 16.0, 4.0, 1.0}) {
      auto& recorded = rungs_[milestone];
      if (time < milestone || recorded.contains(trial)) continue;
      std::vector<double> sorted;
      for (auto [other, score] : recorded) sorted.push_back(score);
      recorded[trial] = value;
      if (sorted.empty()) return false;
      std::sort(sorted.begin(), sorted.end());
      double position = 0.25 * static_cast<double>(sorted.size() - 1);
      auto below = static_cast<std::size_t>(position);
      double above = sorted[std::min(below + 1, sorted.size() - 1)];
      return value > sorted[below] + (position - std::floor(position)) * (above - sorted[below]);
    }
    return false;
  }

 private:
  std::map<double, std::map<std::uint64_t, double>> rungs_;
};

bool agrees_with_definition() {
  kolo::Random random(3);
  auto asha = search::make_scheduler("asha");
  SlowAsha slow;
  std::vector<bool> stopped(300, false);
  std::vector<double> time(300, 0);
  for (std::uint64_t i = 0; i < 300; ++i) asha->add(search::TrialId{i});
  for (int i = 0; i < 20'000; ++i) {
    auto trial = random.below(300);
    if (stopped[trial]) continue;
    double value = random.normal();
    auto decision =
        asha->result(search::TrialId{trial}, {.time = time[trial] += 1, .values = {value}});
    stopped[trial] = slow.stops(trial, time[trial], value);
    if ((decision.action == search::Action::stop) != stopped[trial]) return false;
  }
  return true;
}

}  // namespace

double asha_reports_per_s(const SpeedOptions& options) {
  if (!agrees_with_definition()) {
    std::printf("FAILED asha: its decisions are not those of the definition\n");
    return std::nan("");
  }
  struct Live {
    std::uint64_t id;
    double epoch, quality;
  };
  kolo::Random random(4);
  auto asha = search::make_scheduler("asha");
  std::uint64_t next_id = 0;
  auto begin_trial = [&] {
    asha->add(search::TrialId{next_id});
    return Live{next_id++, 0, random.normal()};
  };
  std::vector<Live> live;
  for (int i = 0; i < 10'000; ++i) live.push_back(begin_trial());

  // Everybody reports every epoch; who is stopped is replaced, so that 10,000 stay live.
  std::size_t reports = 0;
  std::size_t at_rungs = 0;
  search::Result result{.time = 0, .values = {0}};
  auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < (options.quick ? 200 : 600); ++round) {
    for (auto& trial : live) {
      result.time = ++trial.epoch;
      result.values[0] = trial.quality / std::sqrt(trial.epoch);
      auto decision = asha->result(search::TrialId{trial.id}, result);
      ++reports;
      at_rungs += decision.reason.rung ? 1 : 0;
      if (decision.action != search::Action::stop) continue;
      asha->complete(search::TrialId{trial.id});
      trial = begin_trial();
    }
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("asha: %zu reports, %zu of them at rungs, %llu trials in all, %.3g s\n", reports,
              at_rungs, static_cast<unsigned long long>(next_id), took.count());
  return static_cast<double>(reports) / took.count();
}

}  // namespace bench

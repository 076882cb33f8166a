#include "search/scheduler/schedulers.h"

#include "base/errors.h"

namespace kolo::search {
namespace {

constexpr Entry<MakeScheduler> kSchedulers[] = {
    {"fifo", "every trial runs to its end", make_fifo},
    {"asha", "asynchronous halving that stops at rungs (Tune's async_hyperband)", make_asha},
    {"asha_promoting", "asynchronous halving that pauses at rungs and promotes (the paper's ASHA)",
     make_promoting_asha},
    {"successive_halving", "stops all but the best 1/rf at each rung (DeepHyper's stopper)",
     make_successive_halving},
    {"hyperband", "brackets of trials halved together", make_hyperband},
    {"hb_bohb", "hyperband in the order that BOHB's model wants", make_hyperband_for_bohb},
    {"median_stopping_rule", "stops trials whose best is worse than the median of the others",
     make_median_stopping},
    {"pbt", "population based training: the worst copy the best and vary them", make_population},
    {"pbt_replay", "one trial that repeats the schedule a population found",
     make_population_replay},
    {"pb2", "population based bandits: a Gaussian process chooses the variation",
     make_population_bandits},
};

constexpr Registry<MakeScheduler> kRegistry{"scheduler", kSchedulers};

/// Names under which Ray Tune knows them.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"async_hyperband", "asha"},
    {"asynchyperband", "asha"},
    {"medianstopping", "median_stopping_rule"},
};

}  // namespace

const Registry<MakeScheduler>& scheduler_registry() { return kRegistry; }

std::vector<SchedulerInfo> schedulers() {
  std::vector<SchedulerInfo> all;
  for (const auto& entry : kSchedulers) all.push_back({entry.name, entry.summary});
  return all;
}

std::unique_ptr<Scheduler> make_scheduler(std::string_view name, SchedulerOptions options) {
  for (const auto& [other, own] : kOtherNames)
    if (name == other) name = own;
  return kRegistry.at(name).make(std::move(options));
}

void require_one_objective(std::string_view scheduler, const SchedulerOptions& options) {
  if (options.directions.size() > 1)
    throw_error(ErrorCode::unsupported,
                "scheduler '{}' works with one objective, not with {}; use asha, hyperband, "
                "median_stopping_rule or pbt",
                scheduler, options.directions.size());
}

}  // namespace kolo::search

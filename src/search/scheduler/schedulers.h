// The table of schedulers, and what makes each of them.
#pragma once

#include <memory>

#include "base/registry.h"
#include "kolo/search/scheduler.h"

namespace kolo::search {

using MakeScheduler = std::unique_ptr<Scheduler> (*)(SchedulerOptions);

std::unique_ptr<Scheduler> make_fifo(SchedulerOptions options);
std::unique_ptr<Scheduler> make_asha(SchedulerOptions options);
std::unique_ptr<Scheduler> make_promoting_asha(SchedulerOptions options);
std::unique_ptr<Scheduler> make_successive_halving(SchedulerOptions options);
std::unique_ptr<Scheduler> make_hyperband(SchedulerOptions options);
std::unique_ptr<Scheduler> make_hyperband_for_bohb(SchedulerOptions options);
std::unique_ptr<Scheduler> make_median_stopping(SchedulerOptions options);
std::unique_ptr<Scheduler> make_population(SchedulerOptions options);
std::unique_ptr<Scheduler> make_population_replay(SchedulerOptions options);
std::unique_ptr<Scheduler> make_population_bandits(SchedulerOptions options);

/// Throws unsupported unless there is exactly one objective.
void require_one_objective(std::string_view scheduler, const SchedulerOptions& options);

const Registry<MakeScheduler>& scheduler_registry();

}  // namespace kolo::search

// Searches, schedulers and allocations of ranks that are written in Python.
#pragma once

#include <memory>

#include "kolo/search/sampler.h"
#include "kolo/search/scheduler.h"
#include "kolo/tune/options.h"
#include "values.h"

namespace kolo::python {

/// `space` has one parameter, the number of the trial.
std::unique_ptr<search::Sampler> python_sampler(std::shared_ptr<const search::Space> space,
                                                search::SamplerOptions options, Held object);

std::unique_ptr<search::Scheduler> python_scheduler(search::SchedulerOptions options, Held object);

tune::ResourceAllocation python_allocation(Held object);

}  // namespace kolo::python

// Evaluators are the executors of a study (tune/executor) under DeepHyper's names.
#pragma once

#include "hps/search/search_plan.h"
#include "tune/executor/executors.h"

namespace kolo::hps {

/// What the executor of plan.evaluator.method needs, but for its place and its cache. Throws
/// invalid_argument for numbers below 1.
tune::ExecutorSetup evaluator_setup(const SearchPlan& plan);

}  // namespace kolo::hps

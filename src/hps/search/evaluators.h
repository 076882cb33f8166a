// Evaluators: the executors of a study (tune/executor) under DeepHyper's names.
#pragma once

#include <memory>
#include <string>

#include "hps/search/search_plan.h"
#include "tune/executor/caching_executor.h"
#include "tune/executor/executor.h"

namespace kolo::hps {

/// Throws not_found for an unknown one, invalid_argument when the plan lacks what it needs.
void check_evaluator(const SearchPlan& plan);

/// `search` names the search among others in a job database, for ever.
std::unique_ptr<tune::TrialExecutor> make_evaluator(const SearchPlan& plan,
                                                    const std::string& search,
                                                    const tune::ExecutorPlace& place,
                                                    std::shared_ptr<tune::ResultCache> cache);

}  // namespace kolo::hps

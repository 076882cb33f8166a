// The family of evaluators: where evaluations run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hps/search/search_plan.h"
#include "tune/study/study.h"

namespace kolo::hps {

struct EvaluatorInfo {
  std::string_view name;
  std::string_view summary;
};
/// For `kolo list evaluators`.
std::vector<EvaluatorInfo> evaluators();

/// Throws not_found for an unknown one, invalid_argument when the plan lacks what it needs.
void check_evaluator(const SearchPlan& plan);

/// `search` names the search among others in a job database, for ever.
std::unique_ptr<tune::TrialExecutor> make_evaluator(const SearchPlan& plan,
                                                    const std::string& search,
                                                    const tune::ExecutorPlace& place);

}  // namespace kolo::hps

// Runs a search: a study (tune) with DeepHyper's face.
//
// The study's database in the log folder is the truth; results.csv and kolo.log follow it and are
// brought up to date when a search is resumed. So a search may be killed at any instant.
#pragma once

#include <optional>

#include "hps/results/results_csv.h"
#include "hps/search/search_plan.h"

namespace kolo::hps {

struct SearchSummary {
  std::int64_t evaluations = 0;  ///< that have ended, earlier sessions included
  std::int64_t failures = 0;
  std::int64_t cached = 0;          ///< of which the result was known
  std::optional<ResultRow> best{};  ///< by the first objective
  std::vector<ResultRow> front{};   ///< of several objectives: what no other evaluation surpasses
  std::string first_error{};        ///< of the first evaluation that failed
  bool interrupted = false;
  bool gave_up = false;  ///< SearchPlan::max_failures
};

/// How many evaluations run at once for this plan, here or in the allocation of a launcher.
[[nodiscard]] int workers_of(const SearchPlan& plan);

/// Takes what `warm_start` holds into the plan, where it stays whatever becomes of the file: a new
/// search moves an earlier one in its folder aside. run_search() does this itself, before it
/// touches the folder. Throws io and invalid_argument naming the file.
void read_warm_start(SearchPlan& plan);

/// Throws for a plan that cannot run: invalid_argument, not_found, failed_precondition.
void check_search(const SearchPlan& plan);

/// Checks the plan and makes the folder ready: for a new search, by moving an earlier one aside, or
/// for the resume of the one in it. A search that is a job resumes what the same job began, since a
/// job runs again when an allocation has ended; `resume` is set then. run_search() does this
/// itself; where several agents share a folder, one of them does it before any of them runs.
/// `log_dir` must be absolute.
void prepare_folder(SearchPlan& plan);

/// To the end of the search. Throws invalid_argument (a plan that contradicts itself), not_found,
/// failed_precondition (another process has the folder; a resume of another search).
SearchSummary run_search(SearchPlan plan);

}  // namespace kolo::hps

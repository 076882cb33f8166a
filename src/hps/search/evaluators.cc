#include "hps/search/evaluators.h"

#include <algorithm>

#include "base/errors.h"
#include "base/registry.h"
#include "hps/search/evaluation.h"
#include "hps/search/jobs_executor.h"
#include "hps/workers.h"
#include "tune/executor/process_executor.h"
#include "tune/study/program_study.h"

namespace kolo::hps {
namespace {

using MakeEvaluator = std::unique_ptr<tune::TrialExecutor> (*)(const SearchPlan&,
                                                               const std::string&,
                                                               const tune::ExecutorPlace&);

std::unique_ptr<tune::TrialExecutor> make_threads(const SearchPlan& plan, const std::string&,
                                                  const tune::ExecutorPlace& place) {
  if (!plan.run_function)
    throw_error(ErrorCode::invalid_argument,
                "the evaluator '{}' needs a run function of kolo's or of a library; a program runs "
                "with process, ranks or jobs",
                plan.evaluator.method);
  return tune::make_thread_executor(
      place.inbox, runnable_of(plan.run_function, plan.log_dir, plan.objectives), {});
}

/// Each evaluation is a program; on several nodes `ranks` puts `kolo run` before it.
std::unique_ptr<tune::TrialExecutor> make_processes(const SearchPlan& plan, const std::string&,
                                                    const tune::ExecutorPlace& place) {
  tune::ProcessSetup setup;
  setup.metric = objective_name(0, plan.objectives);
  setup.last_line_reports = plan.is_users_program;
  const auto& how = plan.evaluator;
  const bool ranks = how.method == "ranks";
  std::vector<std::string> before;
  if (ranks && how.num_nodes_per_eval > 1) {
    std::string hosts;
    for (const auto& host : how.hosts) hosts += (hosts.empty() ? "" : ",") + host;
    before = {
        plan.kolo, "run", "-np", std::to_string(how.num_nodes_per_eval * how.num_ranks_per_node),
        "-H",      hosts, "--"};
  }
  setup.command = [plan, before, ranks](const tune::StartOrder& order) {
    tune::TrialCommand command;
    if (ranks && before.empty()) command.ranks = plan.evaluator.num_ranks_per_node;
    command.argv = before;
    const auto words = plan.is_users_program
                           ? tune::fill_in(plan.command, order.config, order.trial_id,
                                           order.directory.string(), "")
                           : plan.command;
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    command.environment = {fmt::format("OMP_NUM_THREADS={}", plan.evaluator.num_threads_per_rank)};
    return command;
  };
  return make_process_executor(place, std::move(setup));
}

std::unique_ptr<tune::TrialExecutor> make_jobs(const SearchPlan& plan, const std::string& search,
                                               const tune::ExecutorPlace& place) {
  const JobsPlace jobs = find_jobs_place(plan.search);
  JobsSetup setup;
  setup.database = jobs.database;
  setup.workflow = jobs.workflow;
  setup.envscript = jobs.envscript;
  setup.search = search;
  setup.evaluator = plan.evaluator;
  if (const auto allocation = Allocation::from_environment())
    setup.evaluator.num_evals_per_node =
        std::max(setup.evaluator.num_evals_per_node, allocation->evals_per_node);
  setup.command = plan.command;
  setup.is_users_program = plan.is_users_program;
  setup.metric = objective_name(0, plan.objectives);
  return make_jobs_executor(place.inbox, std::move(setup));
}

constexpr Entry<MakeEvaluator> kEvaluators[] = {
    {"serial", "one after the other, in this process", make_threads},
    {"thread", "threads of this process: cheapest; a crash takes the search down", make_threads},
    {"process", "a process each: a crash is the evaluation's own", make_processes},
    {"ranks", "a `kolo run` of several ranks each", make_processes},
    {"jobs", "jobs in the database of KOLO_DB, run by its launchers", make_jobs},
};
constexpr Registry<MakeEvaluator> kTable{"evaluator", kEvaluators};

}  // namespace

std::vector<EvaluatorInfo> evaluators() {
  std::vector<EvaluatorInfo> infos;
  for (const auto& entry : kTable.entries()) infos.push_back({entry.name, entry.summary});
  return infos;
}

void check_evaluator(const SearchPlan& plan) {
  const auto& how = plan.evaluator;
  const auto& entry = kTable.at(how.method);
  if (how.num_nodes_per_eval < 1 || how.num_ranks_per_node < 1 || how.num_threads_per_rank < 1 ||
      how.num_evals_per_node < 1 || how.num_workers < 0)
    throw_error(ErrorCode::invalid_argument,
                "numbers of nodes, ranks, threads and evaluations must be above 0");
  const bool several = how.num_nodes_per_eval * how.num_ranks_per_node > 1;
  if (several && how.method != "ranks" && how.method != "jobs")
    throw_error(ErrorCode::invalid_argument,
                "evaluations of several ranks need --evaluator ranks or jobs, not {}", how.method);
  if (how.num_nodes_per_eval > 1 && how.method == "ranks" &&
      static_cast<int>(how.hosts.size()) < how.num_nodes_per_eval)
    throw_error(ErrorCode::invalid_argument,
                "--num-nodes-per-eval {} with the evaluator ranks needs as many --hosts; in an "
                "allocation use --evaluator jobs",
                how.num_nodes_per_eval);
  if (entry.make != make_threads && plan.command.empty())
    throw_error(ErrorCode::invalid_argument, "the evaluator '{}' has no program to run",
                how.method);
  if (how.method == "jobs") static_cast<void>(find_jobs_place(plan.search));
}

std::unique_ptr<tune::TrialExecutor> make_evaluator(const SearchPlan& plan,
                                                    const std::string& search,
                                                    const tune::ExecutorPlace& place) {
  return kTable.at(plan.evaluator.method).make(plan, search, place);
}

}  // namespace kolo::hps

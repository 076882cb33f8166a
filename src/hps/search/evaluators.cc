#include "hps/search/evaluators.h"

#include <algorithm>

#include "base/errors.h"
#include "hps/search/evaluation.h"
#include "hps/workers.h"
#include "tune/executor/executors.h"
#include "tune/executor/jobs_executor.h"
#include "tune/executor/trial_environment.h"
#include "tune/study/program_study.h"
#include "tune/study/resource_pool.h"

namespace kolo::hps {
namespace {

tune::TrialCommand command_for(const SearchPlan& plan, const tune::StartOrder& order) {
  const bool as_job = tune::canonical_executor(plan.evaluator.method) == "jobs";
  tune::TrialCommand command;
  command.argv = plan.command;
  if (plan.is_users_program) {
    command.argv =
        tune::fill_in(plan.command, order.config, order.trial_id, order.directory.string(), "");
  } else if (as_job) {
    // A job may run where the study cannot be reached: files carry configuration and result.
    command.argv.insert(command.argv.end(), {"--config", tune::config_file(order).string(),
                                             "--result", tune::result_file(order).string(), "--id",
                                             std::to_string(order.id.trial)});
  }
  if (!as_job)  // a launcher knows the processors that a job has
    command.environment = {fmt::format("OMP_NUM_THREADS={}", plan.evaluator.num_threads_per_rank)};
  return command;
}

}  // namespace

void check_evaluator(const SearchPlan& plan) {
  const auto& how = plan.evaluator;
  const auto executor = tune::canonical_executor(how.method);
  if (how.num_nodes_per_eval < 1 || how.num_ranks_per_node < 1 || how.num_threads_per_rank < 1 ||
      how.num_evals_per_node < 1 || how.num_workers < 0)
    throw_error(ErrorCode::invalid_argument,
                "numbers of nodes, ranks, threads and evaluations must be above 0");
  const bool several = how.num_nodes_per_eval * how.num_ranks_per_node > 1;
  if (several && executor != "ranks" && executor != "jobs")
    throw_error(ErrorCode::invalid_argument,
                "evaluations of several ranks need --evaluator ranks or jobs, not {}", how.method);
  if (how.num_nodes_per_eval > 1 && executor == "ranks" &&
      static_cast<int>(how.hosts.size()) < how.num_nodes_per_eval)
    throw_error(ErrorCode::invalid_argument,
                "--num-nodes-per-eval {} with the evaluator ranks needs as many --hosts; in an "
                "allocation use --evaluator jobs",
                how.num_nodes_per_eval);
  const bool is_thread = executor == "thread";
  if (is_thread && !plan.run_function)
    throw_error(ErrorCode::invalid_argument,
                "the evaluator '{}' needs a run function of kolo's or of a library; a program runs "
                "with process, ranks or jobs",
                how.method);
  if (!is_thread && plan.command.empty())
    throw_error(ErrorCode::invalid_argument, "the evaluator '{}' has no program to run",
                how.method);
  if (executor == "jobs") {
    static_cast<void>(tune::find_jobs_place(plan.search));
  } else if (const double gpus = tune::machine_resources().gpu; how.num_gpus_per_task > gpus) {
    throw_error(ErrorCode::failed_precondition,
                "--num-gpus-per-task {}: this machine has {} GPUs; on a cluster use --evaluator "
                "jobs and a launcher with --gpus-per-node",
                how.num_gpus_per_task, gpus);
  }
  if (plan.is_users_program) tune::check_program(plan.command, *plan.space);
}

std::unique_ptr<tune::TrialExecutor> make_evaluator(const SearchPlan& plan,
                                                    const std::string& search,
                                                    const tune::ExecutorPlace& place,
                                                    std::shared_ptr<tune::ResultCache> cache) {
  const auto& how = plan.evaluator;
  tune::ExecutorSetup setup;
  setup.place = place;
  setup.place.unique_name = search;
  setup.cache = std::move(cache);
  const auto name = tune::canonical_executor(how.method);
  if (name == "thread") {
    setup.trainable = runnable_of(plan.run_function, plan.log_dir, plan.objectives);
    return tune::make_executor(name, std::move(setup));
  }
  setup.command = [plan](const tune::StartOrder& order) { return command_for(plan, order); };
  setup.last_line_reports = plan.is_users_program;
  setup.metric = objective_name(0, plan.objectives);
  setup.shape = {.nodes = how.num_nodes_per_eval,
                 .ranks_per_node = how.num_ranks_per_node,
                 .threads_per_rank = how.num_threads_per_rank,
                 .gpus = how.num_gpus_per_task,
                 .hosts = how.hosts,
                 .trials_per_node = how.num_evals_per_node};
  setup.kolo = plan.kolo;
  setup.time_limit = how.timeout;
  if (name == "jobs") {
    setup.jobs = tune::find_jobs_place(plan.search);
    if (const auto allocation = Allocation::from_environment())
      setup.shape.trials_per_node =
          std::max(setup.shape.trials_per_node, allocation->evals_per_node);
  }
  return tune::make_executor(name, std::move(setup));
}

}  // namespace kolo::hps

#include "hps/search/evaluators.h"

#include <algorithm>

#include "base/errors.h"
#include "hps/search/evaluation.h"
#include "hps/workers.h"
#include "tune/study/cluster_study.h"
#include "tune/study/program_study.h"
#include "tune/study/resource_pool.h"

namespace kolo::hps {

tune::ExecutorSetup evaluator_setup(const SearchPlan& plan) {
  const auto& how = plan.evaluator;
  if (how.num_nodes_per_eval < 1 || how.num_ranks_per_node < 1 || how.num_threads_per_rank < 1 ||
      how.num_evals_per_node < 1 || how.num_workers < 0)
    throw_error(ErrorCode::invalid_argument,
                "numbers of nodes, ranks, threads and evaluations must be above 0");
  if (const double gpus = tune::machine_resources().gpu;
      how.num_gpus_per_task > gpus && how.cluster.empty() &&
      tune::canonical_executor(how.method) != "jobs")
    throw_error(ErrorCode::failed_precondition,
                "--num-gpus-per-task {}: this machine has {} GPUs; on a cluster use --evaluator "
                "jobs and a launcher with --gpus-per-node",
                how.num_gpus_per_task, gpus);
  if (plan.is_users_program) tune::check_program(plan.command, *plan.space);
  tune::ExecutorSetup setup;
  if (plan.run_function)
    setup.trainable = runnable_of(plan.run_function, plan.log_dir, plan.objectives);
  if (!plan.command.empty())
    setup.command = [plan](const tune::StartOrder& order) {
      return tune::TrialCommand{
          plan.is_users_program ? tune::fill_in(plan.command, order.config, order.trial_id,
                                                order.directory.string(), "")
                                : plan.command,
          {fmt::format("OMP_NUM_THREADS={}", plan.evaluator.num_threads_per_rank)}};
    };
  setup.last_line_reports = plan.is_users_program;
  setup.metric = objective_name(0, plan.objectives);
  setup.shape = {.nodes = how.num_nodes_per_eval,
                 .ranks_per_node = how.num_ranks_per_node,
                 .threads_per_rank = how.num_threads_per_rank,
                 .gpus = how.num_gpus_per_task,
                 .hosts = how.hosts,
                 .cluster = how.cluster,
                 .trials_per_node = how.num_evals_per_node};
  if (!how.cluster.empty())
    setup.shape.each_rank = tune::amounts_of_rank({.gpu = how.num_gpus_per_task},
                                                  how.num_nodes_per_eval * how.num_ranks_per_node,
                                                  how.num_threads_per_rank);
  if (const auto allocation = Allocation::from_environment())
    setup.shape.trials_per_node = std::max(setup.shape.trials_per_node, allocation->evals_per_node);
  setup.kolo = plan.kolo;
  setup.time_limit = how.timeout;
  setup.workflow = plan.search;
  return setup;
}

}  // namespace kolo::hps

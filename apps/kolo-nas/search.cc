// kolo nas SEARCH: architectures, and what they are trained with.
#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "hps/problem/plugin.h"
#include "hps/search/search_run.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"
#include "search_command.h"
#include "tune/executor/executors.h"

namespace kolo::app {

namespace {

/// The plan with its problem and its run function. Leaves nothing behind.
const SearchRow& plan_search(NasOptions& options, const cli::OptionSet& given) {
  const auto& row = make_plan(options, given, nas_searches());
  hps::SearchPlan& plan = options.plan;
  const bool several = plan.evaluator.num_nodes_per_eval * plan.evaluator.num_ranks_per_node > 1;
  if (plan.run.empty()) plan.run = several ? "distributed" : "alpha";
  plan.kind = "nas";
  plan.problem = absolute_name(plan.problem);
  if (hps::parse_plugin_name(plan.run)) plan.run = absolute_name(plan.run);
  auto loaded = nas::load_na_problem(plan.problem);
  plan.space = loaded.problem.space();
  const auto& parameters = plan.space->parameters();
  const bool only_architecture =
      std::all_of(parameters.begin(), parameters.end(),
                  [](const auto& one) { return one.path.starts_with("arch_seq"); });
  if (row.sampler == "agebo" && only_architecture)
    log::warning(
        "no hyperparameter of {} varies, so agebo searches as regevo does; let the batch size, "
        "the learning rate or others vary in the problem",
        plan.problem);
  plan.run_function = nas::bind_run(plan.run, loaded.problem);
  plan.metadata = {"n_parameters", "training_time",        "predict_time",           "epochs",
                   "num_ranks",    "effective_batch_size", "effective_learning_rate"};
  plan.command = {program_beside("kolo-nas"),
                  "evaluate",
                  "--problem",
                  plan.problem,
                  "--run",
                  plan.run,
                  "--log-dir",
                  plan.log_dir.string(),
                  "--threads",
                  std::to_string(plan.evaluator.num_threads_per_rank)};
  if (row.sampler != "ppo") refuse(given, kPpoHeading, row.name);
  // Before the first of several agents moves an earlier search aside.
  hps::read_warm_start(plan);
  return row;
}

}  // namespace

int run_nas_search(NasOptions& options, cli::OptionSet& given) {
  const auto& row = plan_search(options, given);
  hps::SearchPlan& plan = options.plan;
  if (row.sampler == "ppo") become_agent(plan, options, given.arguments());
  if (tune::canonical_executor(plan.evaluator.method) == "thread")
    set_compute_threads(plan.evaluator.num_threads_per_rank);
  return run_and_show(std::move(plan), options);
}

int check_nas_search(NasOptions& options, cli::OptionSet& given) {
  const auto& row = plan_search(options, given);
  hps::SearchPlan& plan = options.plan;
  if (row.sampler == "ppo") {
    // How many workers there will be is for the allocation to say: no number of minibatches is too
    // large yet.
    constexpr std::int64_t kAnyNumber = 1'000'000;
    nas::PpoOptions ppo = options.ppo;
    ppo.episodes = plan.evaluator.num_workers > 0 ? plan.evaluator.num_workers : kAnyNumber;
    learn_by_ppo(plan, ppo);
  }
  // How evaluations run is for the nodes to know.
  plan.evaluator = {};
  plan.evaluator.method = "serial";
  hps::check_search(plan);
  return 0;
}

}  // namespace kolo::app

// kolo nas SEARCH: architectures, and what they are trained with.
#include "base/errors.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"
#include "search_command.h"

namespace kolo::app {
namespace {

constexpr std::string_view kUsage =
    "kolo nas SEARCH --problem P [--run alpha|distributed|quick] [OPTIONS]\n"
    "       kolo nas list | draw --problem P | post-train --problem P --log-dir DIR";

}  // namespace

int run_nas_search(const Arguments& arguments) {
  const auto table = search_settings(ppo_settings());
  const SearchArguments command(table, arguments);
  if (command.options.has("help")) {
    print_search_help(kUsage,
                      "Searches for the network architecture that gives the largest objective.\n\n"
                      "  kolo nas regevo --problem benchmark.nas.linear_reg --max-evals 50\n"
                      "  kolo nas agebo --problem benchmark.nas.digits --evaluator ranks "
                      "--num-ranks-per-node 2",
                      nas_searches(), table);
    return 0;
  }
  const auto& row = find_search(nas_searches(), command.search);
  auto plan = plan_of(command, row);
  if (plan.problem.empty())
    throw_error(ErrorCode::invalid_argument, "which problem? Give --problem");
  if (!command.program.empty())
    throw_error(ErrorCode::invalid_argument,
                "architectures are trained by --run, not by a program after --");
  const bool several = plan.evaluator.num_nodes_per_eval * plan.evaluator.num_ranks_per_node > 1;
  if (plan.run.empty()) plan.run = several ? "distributed" : "alpha";
  plan.kind = "nas";
  plan.problem = absolute_name(plan.problem);
  auto loaded = nas::load_na_problem(plan.problem);
  plan.space = loaded.problem.space();
  plan.run_function = nas::bind_run(plan.run, loaded.problem);
  plan.metadata = {"n_parameters", "training_time", "predict_time", "epochs"};
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
  if (row.sampler == "ppo") {
    become_agent(plan, command.options, arguments);
  } else {
    for (const auto& setting : ppo_settings())
      if (command.options.has(setting.option))
        throw_error(ErrorCode::invalid_argument, "the search {} has no --{}", row.name,
                    setting.option);
  }
  if (plan.evaluator.method == "thread" || plan.evaluator.method == "serial")
    set_compute_threads(plan.evaluator.num_threads_per_rank);
  return run_and_show(std::move(plan), command.options);
}

}  // namespace kolo::app

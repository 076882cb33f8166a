// kolo hps: hyperparameter search as DeepHyper has it. kolo evaluate: one evaluation of it.
#include <unistd.h>

#include "base/errors.h"
#include "commands.h"
#include "hps/problem/catalog.h"
#include "hps/search/evaluation.h"
#include "search_command.h"
#include "tune/executor/self_executor.h"

namespace kolo::app {
namespace {

constexpr std::string_view kHpsUsage =
    "kolo hps SEARCH --problem P [--run R] [OPTIONS] [-- PROGRAM ARGUMENTS]";

/// The words that evaluate one configuration of this problem.
std::vector<std::string> evaluate_words(const hps::SearchPlan& plan) {
  std::vector<std::string> words{plan.kolo,    "evaluate",  "--problem",
                                 plan.problem, "--log-dir", plan.log_dir.string()};
  if (!plan.run.empty()) words.insert(words.end(), {"--run", plan.run});
  return words;
}

}  // namespace

int run_command_hps(const Arguments& arguments) {
  const auto table = search_settings();
  const SearchArguments command(table, arguments);
  if (command.options.has("help")) {
    print_search_help(
        kHpsUsage,
        "Searches for the hyperparameters that give the largest objective.\n\n"
        "  kolo hps ambs --problem benchmark.hps.polynome2 --max-evals 100\n"
        "  kolo hps tpe --problem space.yaml --max-evals 50 -- ./train --lr {lr}\n\n"
        "A program answers with the objective on its last line of output (docs/hps.md).",
        hps_searches(), table);
    return 0;
  }
  auto plan = plan_of(command, find_search(hps_searches(), command.search));
  if (plan.problem.empty())
    throw_error(ErrorCode::invalid_argument, "which problem? Give --problem");
  if (plan.search == "grid") {  // once through it; ranges of numbers by ten values each
    plan.algorithm.settings.try_emplace("num_samples", 1);
    plan.algorithm.settings.try_emplace("levels", 10);
  }
  plan.problem = absolute_name(plan.problem);
  plan.run = absolute_name(plan.run);
  auto loaded = hps::load_problem(plan.problem, plan.run);
  if (!command.program.empty()) {
    if (!plan.run.empty())
      throw_error(ErrorCode::invalid_argument, "give --run or a program after --, not both");
    loaded.program = command.program;
    loaded.run = {};
  }
  plan.space = loaded.problem.space();
  plan.objectives = loaded.objectives;
  plan.is_users_program = !loaded.program.empty();
  if (!plan.is_users_program && !loaded.run)
    throw_error(ErrorCode::invalid_argument,
                "{} has no run function of its own: give --run, or a program after --",
                plan.problem);
  plan.run_function = loaded.run;
  plan.command = plan.is_users_program ? loaded.program : evaluate_words(plan);
  return run_and_show(std::move(plan), command.options);
}

int run_command_evaluate(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"problem", "", "", "NAME", "", ""}, {"run", "", "", "NAME", "", ""},
      {"log-dir", "", "", "DIR", "", ""},  {"config", "", "", "FILE", "", ""},
      {"result", "", "", "FILE", "", ""},  {"id", "", "", "N", "", ""},
  };
  const Options options(kTable, arguments);
  const auto loaded =
      hps::load_problem(options.text("problem").value_or(""), options.text("run").value_or(""));
  if (!loaded.run) throw_error(ErrorCode::invalid_argument, "there is no run function");
  const std::string log_dir = options.text("log-dir").value_or("");
  if (options.has("config")) {
    hps::evaluate_file(loaded.run, options.integer("id", 0).value_or(0), *options.text("config"),
                       options.text("result").value_or("result.json"), log_dir, loaded.objectives);
    return 0;
  }
  tune::run_as_trial(hps::runnable_of(loaded.run, log_dir, loaded.objectives));
}

int run_command_nas(const Arguments& arguments) {
  const std::string program = program_beside("kolo-nas");
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw_errno("cannot run {}", program);
}

}  // namespace kolo::app

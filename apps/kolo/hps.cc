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

/// The words that evaluate one configuration of this problem.
std::vector<std::string> evaluate_words(const hps::SearchPlan& plan) {
  std::vector<std::string> words{plan.kolo,    "evaluate",  "--problem",
                                 plan.problem, "--log-dir", plan.log_dir.string()};
  if (!plan.run.empty()) words.insert(words.end(), {"--run", plan.run});
  return words;
}

int run_hps(HpsOptions& options, OptionSet& given) {
  make_plan(options, given, hps_searches());
  hps::SearchPlan& plan = options.plan;
  if (plan.search == "grid") {  // once through it; ranges of numbers by ten values each
    plan.algorithm.settings.try_emplace("num_samples", 1);
    plan.algorithm.settings.try_emplace("levels", 10);
  }
  take_problem(plan, options.program);
  if (!plan.is_users_program) plan.command = evaluate_words(plan);
  return run_and_show(std::move(plan), options);
}

int run_evaluate(EvaluateOptions& options) {
  const auto loaded = hps::load_problem(options.problem, options.run);
  if (!loaded.run)
    throw_error(ErrorCode::invalid_argument, "problem {} has no run function; give --run",
                options.problem);
  tune::run_as_trial(hps::runnable_of(loaded.run, options.log_dir, loaded.objectives));
}

int run_nas(const cli::Arguments& arguments) {
  const std::string program = program_beside("kolo-nas");
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw_errno("cannot run {}", program);
}

constexpr const Command* kNasParts[] = {&kNasDrawAbout, &kNasPostTrainAbout, &kNasListAbout};

}  // namespace

constinit const Command kHps{
    .name = "hps",
    .summary = "Search for the hyperparameters with the largest objective, as DeepHyper does",
    .examples =
        "kolo hps ambs --problem benchmark.hps.polynome2 --max-evals 100\n"
        "kolo hps tpe --problem space.yaml --max-evals 50 -- ./train --lr {lr}\n",
    .notes = "Results go to results.csv in the folder of --log-dir; `kolo analytics` reads them.",
    .options = declared<HpsOptions>,
    .run = run_declared<HpsOptions, run_hps>,
    .heading = "Commands for searches",
};

constinit const Command kEvaluate{
    .name = "evaluate",
    .summary = "Evaluate one configuration of a search",
    .options = declared<EvaluateOptions>,
    .run = run_declared<EvaluateOptions, run_evaluate>,
    .is_hidden = true,
};

constinit const Command kNas{
    .name = kNasSearchAbout.name,
    .summary = kNasSearchAbout.summary,
    .examples = kNasSearchAbout.examples,
    .notes = kNasSearchAbout.notes,
    .options = kNasSearchAbout.options,
    .subcommands = kNasParts,
    .forward = run_nas,
};

}  // namespace kolo::app

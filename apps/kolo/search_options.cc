// Most rows point to members of the plan and of its evaluator options, so a value that is read
// needs no further copy. A table has rows of one struct only; therefore a heading is filled by
// several add() calls, and their order is the order in the help. The headings of models, evolution
// and PPO are also keys: refuse() finds by them the options that a search does not take. Several
// names can stand for one sampler, because other tools use those names for it.
#include "search_options.h"

#include <chrono>

#include "base/subprocess.h"
#include "names.h"
#include "search_command.h"

namespace kolo::app {
namespace {

using cli::NamedText;
using cli::Option;
using namespace cli::rows;
using cli::OptionSet;
using hps::EvaluatorOptions;
using hps::SearchPlan;

constexpr std::string_view kSearchHeading = "Search";
constexpr std::string_view kEvaluationHeading = "Evaluations";

constexpr SearchRow kHpsSearches[] = {
    {"ambs", "forest", "model the objective with trees (DeepHyper's AMBS and CBO)", true},
    {"random", "random", "draw independent points"},
    {"tpe", "tpe", "compare the densities of good and of other points (TPE)"},
    {"gp", "gp", "model the objective with a Gaussian process"},
    {"cmaes", "cmaes", "adapt the covariance of a normal distribution (CMA-ES)"},
    {"evolution", "evolution", "change parameters of good points, aging evolution", false, true},
    {"regevo", "evolution", "the same as evolution", false, true},
    {"auto", "auto", "pick one of the other searches and say why"},
    {"local_search", "local_search", "try neighbours of the best points"},
    {"nsga2", "nsga2", "genetic search for several objectives"},
    {"ga", "nsga2", "the same as nsga2"},
    {"sobol", "sobol", "walk along a Sobol sequence"},
    {"halton", "halton", "walk along a Halton sequence"},
    {"lhs", "lhs", "draw from Latin hypercubes"},
    {"grid", "grid", "try every combination"},
};

constexpr SearchRow kNasSearches[] = {
    {"random", "random", "draw independent architectures"},
    {"regevo", "evolution", "change one operation of a good architecture, aging evolution", false,
     true},
    {"agebo", "agebo", "evolve architectures and model the hyperparameters of training", false,
     true},
    {"ppo", "ppo", "learn a policy that builds architectures, with --num-agents agents"},
    {"ambs", "forest", "model the objective with trees", true},
    {"ambsmixed", "forest", "model architectures and hyperparameters together", true},
    {"regevomixed", "evolution", "evolve architectures and hyperparameters together", false, true},
    {"local_search", "local_search", "try neighbours of the best architectures"},
    {"tpe", "tpe", "compare the densities of good and of other architectures (TPE)"},
    {"auto", "auto", "pick one of the other searches and say why"},
};

std::vector<NamedText> names_of(std::span<const SearchRow> rows) {
  std::vector<NamedText> names;
  for (const auto& row : rows) names.push_back({std::string(row.name), std::string(row.summary)});
  return names;
}
std::vector<NamedText> hps_names(const OptionSet&) { return names_of(kHpsSearches); }
std::vector<NamedText> nas_names(const OptionSet&) { return names_of(kNasSearches); }

/// Only kolo-nas, which has libtorch, knows them.
std::vector<NamedText> nas_problem_names(const OptionSet& /*typed*/) {
  const auto listed =
      run_command({program_beside("kolo-nas"), "list"}, Deadline::after(std::chrono::seconds(5)));
  std::vector<NamedText> names;
  for (const auto& line : cli::split(listed.output, '\n')) {
    if (!line.starts_with("  benchmark.nas.")) continue;
    const auto end = line.find(' ', 2);
    const auto summary = line.find_first_not_of(' ', end);
    names.push_back({line.substr(2, end - 2),
                     summary == std::string::npos ? std::string() : line.substr(summary)});
  }
  return names;
}
/// `kolo submit` has the options of both kinds of searches.
std::vector<NamedText> plan_problem_names(const OptionSet& typed) {
  if (!typed.has("network")) return problem_names(typed);
  const bool is_hps =
      typed.has("KIND") && typed.at("KIND").given == std::vector<std::string>{"hps"};
  return is_hps ? problem_names(typed) : nas_problem_names(typed);
}

constexpr Option<SearchPlan> kPlanRows[] = {
    {&SearchPlan::problem, "problem", "NAME|FILE",
     "Search this problem: a built-in one, a YAML file, LIB.so:NAME of a library of yours, or "
     "FILE.py:NAME in Python.",
     aliases("-p"), names(plan_problem_names), is_needed},
    {&SearchPlan::run, "run", "NAME|PROGRAM|LIB.so:NAME",
     "Evaluate points by this run function or program.", aliases("-r"),
     fallback("the one of the problem")},
    {&SearchPlan::max_evals, "max-evals", "N",
     "End the search after N evaluations; -1 searches until it is stopped.", least(-1)},
    {&SearchPlan::max_failures, "max-failures", "N",
     "Give up when N evaluations have failed and none has succeeded; 0 never gives up.", least(0)},
};
constexpr Option<SearchOptions> kTimeoutRow[] = {
    {&SearchOptions::timeout, "timeout", "SECONDS", "End the search after this many seconds.",
     least(0)},
};
constexpr Option<SearchPlan> kPlanFiles[] = {
    {&SearchPlan::seed, "seed", "N", "Draw the random numbers of the search from this seed."},
    {&SearchPlan::log_dir, "log-dir", "DIR",
     "Write results.csv, kolo.log, checkpoints and the database of the search to this folder."},
    {&SearchPlan::warm_start, "warm-start", "FILE",
     "Learn from the results.csv of an earlier search before the first evaluation."},
    {&SearchPlan::cache_key, "cache-key", "uuid|to_dict",
     "With to_dict, evaluate each configuration once and use its result again.",
     choices("uuid|to_dict")},
};
constexpr Option<SearchOptions> kSamplerSettings[] = {
    {&SearchOptions::set, "set", "NAME=VALUE",
     "Change a setting of the search algorithm; docs/search.md lists them."},
};

constexpr Option<EvaluatorOptions> kEvaluations[] = {
    {&EvaluatorOptions::num_workers, "num-workers", "N", "Run N evaluations at the same time.",
     fallback("as many as fit"), least(1)},
    {&EvaluatorOptions::num_nodes_per_eval, "num-nodes-per-eval", "N",
     "Give each evaluation N nodes (evaluators ranks and jobs).", least(1)},
    {&EvaluatorOptions::num_ranks_per_node, "num-ranks-per-node", "N",
     "Start N ranks of an evaluation on each of its nodes.", least(1)},
    {&EvaluatorOptions::num_threads_per_rank, "num-threads-per-rank", "N",
     "Give each rank N threads.", aliases("--num-cpus-per-task"), least(1)},
    {&EvaluatorOptions::num_evals_per_node, "num-evals-per-node", "N",
     "Let N evaluations share a node (evaluator jobs).", least(1)},
    {&EvaluatorOptions::num_gpus_per_task, "num-gpus-per-task", "N", "Give each evaluation N GPUs.",
     least(0)},
};
constexpr Option<SearchOptions> kEvaluationTime[] = {
    {&SearchOptions::eval_timeout_minutes, "eval-timeout-minutes", "N",
     "Let an evaluation that takes longer than N minutes fail; 0 sets no limit.", least(0)},
};
constexpr Option<EvaluatorOptions> kEvaluator[] = {
    {&EvaluatorOptions::method, "evaluator", "NAME",
     "Run evaluations by this executor; `kolo list executors` shows the names. `cluster` runs "
     "them on a cluster, by ranks if an evaluation has several, else by process; `ray` does so if "
     "there is a cluster.",
     aliases("--executor"), names(executor_names)},
};
constexpr Option<SearchOptions> kHostsRow[] = {
    {&SearchOptions::hosts, "hosts", "HOST:SLOTS,…",
     "Run evaluations on these hosts, which are reached by ssh; a slot holds one thread of a rank "
     "(evaluators process and ranks).",
     aliases("-H"), fallback("this machine")},
    {&SearchOptions::cluster, "cluster", "NAME",
     "Run evaluations on the hosts of this cluster, which `kolo up` made (evaluators process and "
     "ranks).",
     fallback("with --evaluator cluster, the only one there is"), names(cluster_names)},
};

constexpr Option<SearchOptions> kModels[] = {
    {&SearchOptions::surrogate_model, "surrogate-model", "ET|RF|GP|DUMMY",
     "Model the objective by extra trees (ET), a random forest (RF) or a Gaussian process (GP); "
     "DUMMY draws at random.",
     fallback("ET"), choices("ET|RF|GP|DUMMY")},
    {&SearchOptions::acq_func, "acq-func", "NAME",
     "Choose points by this acquisition function: UCB, EI or PI. With a d at the end, as in UCBd, "
     "the uncertainty of a point is the deviation between the trees alone.",
     fallback("UCBd")},
    {&SearchOptions::liar_strategy, "liar-strategy", "NAME",
     "Choose several points at once by this strategy: qUCB, cl_min, cl_mean, cl_max, topk or "
     "boltzmann.",
     aliases("--multi-point-strategy"), fallback("qUCB")},
    {&SearchOptions::kappa, "kappa", "X", "Explore more with UCB the larger X is.",
     fallback("1.96"), least(0)},
    {&SearchOptions::xi, "xi", "X", "Explore more with EI and PI the larger X is.",
     fallback("0.001"), least(0)},
    {&SearchOptions::n_jobs, "n-jobs", "N",
     "Accepted as DeepHyper has it, without effect: the model needs one thread.", least(-1)},
};

constexpr Option<SearchOptions> kEvolution[] = {
    {&SearchOptions::population_size, "population-size", "N",
     "Keep a population of N points, but at most a tenth of --max-evals.", fallback("100"),
     least(1)},
    {&SearchOptions::sample_size, "sample-size", "N",
     "Take the best of N random members of the population as a parent.", fallback("10"), least(1)},
};

constexpr Option<SearchPlan> kSearchResume[] = {
    {&SearchPlan::resume, "resume", "",
     "Continue the search in the folder of --log-dir, from its database or its results.csv."},
};
constexpr Option<SearchOptions> kSearchOutput[] = {
    {&SearchOptions::json, "json", "", "Print events as JSON, one object on each line."},
    {&SearchOptions::quiet, "quiet", "", "Print the result alone.", aliases("-q")},
};

constexpr Option<PpoCommandOptions> kAgentsRow[] = {
    {&PpoCommandOptions::num_agents, "num-agents", "N",
     "Let N agents learn together, each in a process of its own.", fallback("1"), least(1)},
};
constexpr Option<nas::PpoOptions> kPpoRows[] = {
    {&nas::PpoOptions::network, "network", "NAME",
     "Use this policy network: ppo_{lstm,lnlstm}_{32,64,128}."},
    {&nas::PpoOptions::lr, "lr", "X", "Train the policy with this learning rate.", least(0)},
    {&nas::PpoOptions::cliprange, "cliprange", "X",
     "Clip the ratio between the new and the old policy to 1 ± X.", least(0)},
    {&nas::PpoOptions::ent_coef, "ent-coef", "X",
     "Weigh the entropy of the policy by X in the loss.", least(0)},
    {&nas::PpoOptions::vf_coef, "vf-coef", "X",
     "Weigh the error of the value function by X in the loss.", least(0)},
    {&nas::PpoOptions::gamma, "gamma", "X", "Discount later rewards by X per step.", least(0)},
    {&nas::PpoOptions::lam, "lam", "X", "Estimate advantages with this lambda (GAE).", least(0)},
    {&nas::PpoOptions::max_grad_norm, "max-grad-norm", "X",
     "Scale gradients with a larger norm down to X.", least(0)},
    {&nas::PpoOptions::nminibatches, "nminibatches", "N", "Split each batch into N minibatches.",
     least(1)},
    {&nas::PpoOptions::noptepochs, "noptepochs", "N", "Pass N times over each batch.", least(1)},
};

constexpr Option<SearchOptions> kHpsSearch[] = {
    {&SearchOptions::search, "SEARCH", "", "How the next points are chosen:", only(hps_names)},
};
constexpr Option<SearchOptions> kNasSearch[] = {
    {&SearchOptions::search, "SEARCH", "",
     "How the next architectures are chosen:", only(nas_names)},
};
constexpr Option<HpsOptions> kHpsProgram[] = {
    {&HpsOptions::program, "PROGRAM", "",
     "A program that evaluates a point; {NAME} in its arguments is the value of a parameter, and "
     "its last line of output is the objective.",
     is_optional, takes(cli::Takes::separated)},
};

constexpr Option<NasDrawOptions> kDrawRows[] = {
    {&NasDrawOptions::problem, "problem", "NAME|FILE", "Draw the space of this problem.",
     aliases("-p"), names(nas_problem_names), is_needed},
    {&NasDrawOptions::arch, "arch", "LIST",
     "Draw one architecture, given by its choices, as in '[1, 0, 3]'.",
     fallback("the whole space")},
    {&NasDrawOptions::dot, "dot", "", "Write Graphviz code instead of an SVG picture."},
    {&NasDrawOptions::output, "output", "FILE", "Write to this file.", aliases("-o"),
     fallback("standard output")},
};

constexpr Option<NasPostTrainOptions> kPostTrainRows[] = {
    {&NasPostTrainOptions::problem, "problem", "NAME|FILE", "The problem that was searched.",
     aliases("-p"), names(nas_problem_names), is_needed},
    {&NasPostTrainOptions::log_dir, "log-dir", "DIR",
     "Read the results of the search from this folder."},
    {&NasPostTrainOptions::k, "k", "N", "Train the N best architectures.", aliases("-k"), least(1)},
    {&NasPostTrainOptions::num_epochs, "num-epochs", "N", "Train each of them for N epochs.",
     fallback("as the problem says"), least(1)},
    {&NasPostTrainOptions::repeat, "repeat", "N",
     "Train each of them N times, with different seeds.", fallback("as the problem says"),
     least(1)},
    {&NasPostTrainOptions::run, "run", "NAME", "Train by this run function.", aliases("-r")},
    {&NasPostTrainOptions::threads, "num-threads-per-rank", "N", "Compute with N threads.",
     least(1)},
};

constexpr Option<EvaluateOptions> kEvaluateRows[] = {
    {&EvaluateOptions::problem, "problem", "NAME", "The problem."},
    {&EvaluateOptions::run, "run", "NAME", "The run function."},
    {&EvaluateOptions::log_dir, "log-dir", "DIR", "The folder of the search."},
    {&EvaluateOptions::threads, "threads", "N", "Compute with N threads.", least(1)},
};

}  // namespace

std::span<const SearchRow> hps_searches() { return kHpsSearches; }
std::span<const SearchRow> nas_searches() { return kNasSearches; }

void declare_search(OptionSet& set, SearchOptions& options) {
  set.add(kSearchHeading, kPlanRows, options.plan);
  set.add(kSearchHeading, kTimeoutRow, options);
  set.add(kSearchHeading, kPlanFiles, options.plan);
  set.add(kSearchHeading, kSamplerSettings, options);
  set.add(kEvaluationHeading, kEvaluations, options.plan.evaluator);
  set.add(kEvaluationHeading, kEvaluationTime, options);
  set.add(kModelHeading, kModels, options);
  set.add(kEvolutionHeading, kEvolution, options);
}

void declare_search_here(OptionSet& set, SearchOptions& options) {
  set.add(kSearchHeading, kSearchResume, options.plan);
  set.add(kEvaluationHeading, kEvaluator, options.plan.evaluator);
  set.add(kEvaluationHeading, kHostsRow, options);
  set.add("Output", kSearchOutput, options);
}

void declare_ppo(OptionSet& set, PpoCommandOptions& options) {
  set.add(kPpoHeading, kAgentsRow, options);
  set.add(kPpoHeading, kPpoRows, options.ppo);
}

void HpsOptions::declare(OptionSet& set) {
  set.add("Arguments", kHpsSearch, static_cast<SearchOptions&>(*this));
  set.add("Arguments", kHpsProgram, *this);
  declare_search(set, *this);
  declare_search_here(set, *this);
}

void NasOptions::declare(OptionSet& set) {
  set.add("Arguments", kNasSearch, static_cast<SearchOptions&>(*this));
  declare_search(set, *this);
  declare_ppo(set, *this);
  declare_search_here(set, *this);
}

void NasDrawOptions::declare(OptionSet& set) { set.add("Options", kDrawRows, *this); }
void NasPostTrainOptions::declare(OptionSet& set) { set.add("Options", kPostTrainRows, *this); }
void EvaluateOptions::declare(OptionSet& set) { set.add("Options", kEvaluateRows, *this); }

}  // namespace kolo::app

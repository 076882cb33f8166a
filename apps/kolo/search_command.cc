// make_plan() takes the sampler from the row of the search, then the options of the model and of
// the evolution, and --set last, so that --set wins. An option that the chosen search does not have
// is refused: ignoring it would let users believe that it had an effect. Paths are made absolute,
// because evaluations start in other directories. The exit status is 130 after an interrupt, 1 if
// no evaluation succeeded, and 0 otherwise.
#include "search_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/interrupt.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "cluster/members.h"
#include "hps/problem/catalog.h"
#include "hps/search/search_run.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/study/cluster_study.h"
#include "watching.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

/// --surrogate-model and its companions, in the words of kolo's samplers.
void take_model(const SearchOptions& options, tune::SearchAlg& algorithm) {
  auto& settings = algorithm.settings;
  if (options.surrogate_model == "GP") {
    algorithm.name = "gp";
  } else if (options.surrogate_model == "DUMMY") {
    algorithm.name = "random";
    return;
  } else if (!options.surrogate_model.empty()) {
    settings.insert_or_assign("surrogate_model", options.surrogate_model);
  }
  if (std::string function = options.acq_func; !function.empty()) {
    // A portfolio that DeepHyper dropped as its default, and UCB seen from below.
    if (function == "gp_hedge")
      fmt::print(stderr, "--acq-func gp_hedge does not exist in kolo; UCB is used instead\n");
    if (function == "gp_hedge" || function == "LCB") function = "UCB";
    settings.insert_or_assign("acq_func", function);
  }
  if (!options.liar_strategy.empty() && algorithm.name != "gp")
    settings.insert_or_assign("multi_point_strategy", options.liar_strategy);
  if (options.kappa) settings.insert_or_assign("kappa", *options.kappa);
  if (options.xi) settings.insert_or_assign("xi", *options.xi);
}

void take_algorithm(const SearchOptions& options, const cli::OptionSet& given, const SearchRow& row,
                    tune::SearchAlg& algorithm) {
  algorithm.name = row.sampler;
  if (row.models)
    take_model(options, algorithm);
  else
    refuse(given, kModelHeading, row.name);
  if (!row.evolves) refuse(given, kEvolutionHeading, row.name);
  if (options.population_size)
    algorithm.settings.insert_or_assign("population", *options.population_size);
  if (options.sample_size) algorithm.settings.insert_or_assign("sample", *options.sample_size);
  const search::Value more = tune::parse_assignments(options.set);
  for (const auto& [name, value] : more.as_dict()) algorithm.settings.insert_or_assign(name, value);
}

std::string numbers_of(const std::vector<double>& values) {
  return fmt::format("{:.5g}", fmt::join(values, ", "));
}

/// The best evaluation, or, of several objectives, those that no other surpasses.
void show_best(const hps::SearchSummary& summary, const std::string& who) {
  if (!summary.best) return;
  if (summary.front.empty()) {
    fmt::print("{}best: objective {} of evaluation {}: {}\n", who,
               numbers_of(summary.best->objectives), summary.best->job_id,
               printable(summary.best->parameters.to_string()));
    return;
  }
  constexpr std::size_t kMost = 10;
  const auto& front = summary.front;
  fmt::print("{}Pareto front: {} of {} evaluations{}\n", who, front.size(), summary.evaluations,
             front.size() > kMost ? fmt::format(", of which {} follow", kMost) : "");
  for (std::size_t i = 0; i < std::min(front.size(), kMost); ++i)
    fmt::print("{}  objectives {} of evaluation {}: {}\n", who, numbers_of(front[i].objectives),
               front[i].job_id, printable(front[i].parameters.to_string()));
}

}  // namespace

void refuse(const cli::OptionSet& given, std::string_view heading, std::string_view search) {
  for (const auto& row : given.rows())
    if (row.heading == heading && !row.source.empty())
      throw_error(ErrorCode::invalid_argument, "the search {} has no option --{}", search,
                  row.text.name);
}

void take_cluster(const SearchOptions& options, hps::EvaluatorOptions& how) {
  // Whoever comes from Ray has a cluster, or this machine if there is none.
  const bool is_ray = how.method == "ray" && !cluster::cluster_names().empty();
  const bool is_cluster = how.method == "cluster" || is_ray;
  if (options.cluster.empty() && !is_cluster) return;
  if (!options.hosts.empty())
    throw_error(ErrorCode::invalid_argument, "--hosts and --cluster exclude each other");
  if (is_cluster)
    how.method = how.num_nodes_per_eval * how.num_ranks_per_node > 1 ? "ranks" : "process";
  how.cluster = cluster::cluster_name_or_only(options.cluster);
  how.hosts = cluster::hosts_of_cluster(
      how.cluster, tune::amounts_of_rank({.gpu = how.num_gpus_per_task},
                                         how.num_nodes_per_eval * how.num_ranks_per_node,
                                         how.num_threads_per_rank));
}

const SearchRow& make_plan(SearchOptions& options, const cli::OptionSet& given,
                           std::span<const SearchRow> rows) {
  const SearchRow& row = *std::find_if(
      rows.begin(), rows.end(), [&](const SearchRow& each) { return each.name == options.search; });
  hps::SearchPlan& plan = options.plan;
  plan.search = row.name;
  take_algorithm(options, given, row, plan.algorithm);
  if (options.timeout) plan.timeout = std::chrono::duration<double>(*options.timeout);
  plan.log_dir = fs::absolute(plan.log_dir).lexically_normal();
  if (plan.log_dir.filename().empty()) plan.log_dir = plan.log_dir.parent_path();
  auto& how = plan.evaluator;
  if (options.eval_timeout_minutes > 0)
    how.timeout = std::chrono::duration<double>(60 * options.eval_timeout_minutes);
  if (!options.hosts.empty()) how.hosts = launch::parse_hosts(options.hosts);
  take_cluster(options, how);
  plan.kolo = program_beside("kolo");
  return row;
}

void take_problem(hps::SearchPlan& plan, const std::vector<std::string>& program) {
  plan.problem = absolute_name(plan.problem);
  plan.run = absolute_name(plan.run);
  auto loaded = hps::load_problem(plan.problem, plan.run);
  if (!program.empty()) {
    if (!plan.run.empty())
      throw_error(ErrorCode::invalid_argument, "give --run or a program after --, not both");
    loaded.program = program;
    loaded.run = {};
    loaded.python_run.reset();
  }
  if (loaded.python_run) hps::check_python_run(*loaded.python_run);
  plan.space = loaded.problem.space();
  plan.objectives = loaded.objectives;
  plan.is_users_program = !loaded.program.empty();
  if (!plan.is_users_program && !loaded.run)
    throw_error(ErrorCode::invalid_argument,
                "{} has no run function of its own: give --run, or a program after --",
                plan.problem);
  plan.run_function = loaded.run;
  plan.command = loaded.program;
}

int run_and_show(hps::SearchPlan plan, const SearchOptions& options) {
  plan.observers = observers_for(options.json, options.quiet || plan.agent > 0);
  plan.interrupted = catch_interrupts();
  const std::string folder = plan.log_dir.string();
  const std::string who = plan.agents > 1 ? fmt::format("agent {}: ", plan.agent) : "";
  hps::SearchSummary summary;
  try {
    summary = hps::run_search(std::move(plan));
  } catch (const Error& error) {
    // An agent may have been waiting for the others.
    if (error.code() != ErrorCode::cancelled || !is_interrupted()) throw;
    fmt::print(stderr, "stopped; --resume continues the search\n");
    return 130;
  }
  if (summary.interrupted) {
    fmt::print(stderr, "stopped after {}; --resume continues the search\n",
               counted(summary.evaluations, "evaluation"));
    return 130;
  }
  if (!options.json) {
    fmt::print("{}{}, {} failed{}; results in {}/results.csv\n", who,
               counted(summary.evaluations, "evaluation"), summary.failures,
               summary.cached > 0 ? fmt::format(", {} taken from the cache", summary.cached) : "",
               folder);
    show_best(summary, who);
  }
  // A search none of whose evaluations worked has failed.
  if (summary.failures < summary.evaluations) return 0;
  if (summary.evaluations == 0)
    fmt::print(stderr, "{}the search ended without an evaluation\n", who);
  else
    fmt::print(stderr, "{}every evaluation failed{}; the first error: {}\n", who,
               summary.gave_up ? ", so the search gave up (--max-failures)" : "",
               printable_lines(summary.first_error));
  return 1;
}

std::string absolute_name(const std::string& name) {
  const auto colon = name.rfind(':');
  const std::string path = name.substr(0, colon);
  if (path.empty() || !fs::exists(path)) return name;
  return fs::absolute(path).string() + (colon == std::string::npos ? "" : name.substr(colon));
}

std::string program_beside(std::string_view name) {
  const fs::path own = fs::read_symlink("/proc/self/exe");
  const fs::path beside = own.parent_path() / name;
  if (!fs::exists(beside))
    throw_error(ErrorCode::not_found,
                "{} does not exist: this kolo has no libtorch; install the package kolo-torch, or "
                "build with -DKOLO_WITH_TORCH=ON",
                beside.string());
  return beside.string();
}

}  // namespace kolo::app

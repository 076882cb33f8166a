#include "search_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/errors.h"
#include "base/registry.h"
#include "hps/search/evaluators.h"
#include "search/space/json_value.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/protocol/value_text.h"
#include "watching.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

constexpr Setting kSearchSettings[] = {
    {"problem", "-p", "", "NAME|FILE|LIB.so:NAME", "", "what is searched"},
    {"run", "-r", "", "NAME|PROGRAM|LIB.so:NAME", "the problem's own", "what evaluates a point"},
    {"max-evals", "", "", "N", "1000000", "evaluations; -1 = without end"},
    {"timeout", "", "", "SECONDS", "", "of the whole search"},
    {"eval-timeout-minutes", "", "", "N", "4096", "of one evaluation; beyond it it fails"},
    {"evaluator", "", "", "NAME", "process", "where evaluations run: `kolo list evaluators`"},
    {"num-workers", "", "", "N", "what fits", "evaluations at once"},
    {"num-nodes-per-eval", "", "", "N", "1", "nodes of one evaluation (evaluators ranks, jobs)"},
    {"num-ranks-per-node", "", "", "N", "1", "ranks of one evaluation on each of its nodes"},
    {"num-threads-per-rank", "--num-cpus-per-task", "", "N", "1", "threads of each rank"},
    {"num-evals-per-node", "", "", "N", "1", "evaluations that share a node (evaluator jobs)"},
    {"num-gpus-per-task", "", "", "N", "0", "devices of one evaluation"},
    {"hosts", "-H", "", "HOST,…", "", "for evaluations of several nodes with the evaluator ranks"},
    {"seed", "", "", "N", "0", "of the search"},
    {"cache-key", "", "", "KEY", "uuid",
     "to_dict: a configuration is evaluated once, its result used again"},
    {"log-dir", "", "", "DIR", ".", "results.csv, kolo.log, save/ and the search's database"},
    {"resume", "", "", "", "", "go on with the search in --log-dir, or with its results.csv"},
    {"warm-start", "", "", "FILE", "", "results.csv of an earlier search, to learn from"},
    {"set", "", "", "NAME=VALUE", "", "a setting of the sampler (docs/search.md)", true},
    {"surrogate-model", "", "", "NAME", "ET",
     "ET, RF or GP; DUMMY = random (model-based searches)"},
    {"liar-strategy", "--multi-point-strategy", "", "NAME", "qUCB",
     "several points at once: qUCB, cl_min, cl_mean, cl_max, topk, boltzmann"},
    {"acq-func", "", "", "NAME", "UCBd", "UCB, EI, PI; with d the deviation between trees alone"},
    {"kappa", "", "", "X", "1.96", "exploration of UCB"},
    {"xi", "", "", "X", "0.001", "exploration of EI and PI"},
    {"n-jobs", "", "", "N", "1", "understood; the model needs one thread"},
    {"population-size", "", "", "N", "100", "of evolution; at most a tenth of --max-evals"},
    {"sample-size", "", "", "N", "10", "of evolution: the parent is the best of so many"},
    {"json", "", "", "", "", "print events, one JSON object per line"},
    {"quiet", "-q", "", "", "", "print the result alone"},
    {"help", "-h", "", "", "", "this text"},
};

/// Names of evaluators in DeepHyper's versions.
std::string evaluator_name(const std::string& name) {
  static const std::map<std::string, std::string> kOld = {
      {"balsam", "jobs"},        {"ray", "process"},         {"rayhorovod", "ranks"},
      {"subprocess", "process"}, {"processPool", "process"}, {"loky", "process"},
      {"threadPool", "thread"},  {"mpicomm", "ranks"}};
  const auto found = kOld.find(name);
  return found == kOld.end() ? name : found->second;
}

int integer_of(const Options& options, std::string_view name, int least, int otherwise) {
  const auto number = options.integer(name, least);
  if (!number) return otherwise;
  if (*number > 1'000'000'000)
    throw_error(ErrorCode::invalid_argument, "--{} {} is too large", name, *number);
  return static_cast<int>(*number);
}

/// --surrogate-model and its companions, in the words of kolo's samplers.
void take_model(const Options& options, tune::SearchAlg& algorithm) {
  auto& settings = algorithm.settings;
  const std::string model = options.text("surrogate-model").value_or("");
  if (model == "GP") {
    algorithm.name = "gp";
  } else if (model == "DUMMY") {
    algorithm.name = "random";
    return;
  } else if (!model.empty()) {
    settings.insert_or_assign("surrogate_model", model);
  }
  if (auto function = options.text("acq-func")) {
    if (*function == "gp_hedge" || *function == "LCB") {
      // A portfolio that DeepHyper dropped as its default, and UCB seen from below.
      if (*function == "gp_hedge")
        fmt::print(stderr, "--acq-func gp_hedge is not here; UCB takes its place\n");
      function = "UCB";
    }
    settings.insert_or_assign("acq_func", *function);
  }
  if (const auto strategy = options.text("liar-strategy"); strategy && algorithm.name != "gp")
    settings.insert_or_assign("multi_point_strategy", *strategy);
  for (const char* name : {"kappa", "xi"})
    if (const auto number = options.number(name, 0)) settings.insert_or_assign(name, *number);
}

void take_algorithm(const Options& options, const SearchRow& row, tune::SearchAlg& algorithm) {
  algorithm.name = row.sampler;
  const auto refuse = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (options.has(name))
        throw_error(ErrorCode::invalid_argument, "the search {} has no --{}", row.name, name);
  };
  if (row.models)
    take_model(options, algorithm);
  else
    refuse({"surrogate-model", "liar-strategy", "acq-func", "kappa", "xi"});
  if (row.evolves) {
    if (const auto size = options.integer("population-size", 1))
      algorithm.settings.insert_or_assign("population", static_cast<std::int64_t>(*size));
    if (const auto size = options.integer("sample-size", 1))
      algorithm.settings.insert_or_assign("sample", static_cast<std::int64_t>(*size));
  } else {
    refuse({"population-size", "sample-size"});
  }
  const search::Value more = tune::parse_assignments(options.texts("set"));
  for (const auto& [name, value] : more.as_dict()) algorithm.settings.insert_or_assign(name, value);
}

std::vector<std::string> before_separator(const std::vector<std::string>& arguments) {
  return {arguments.begin(), std::find(arguments.begin(), arguments.end(), "--")};
}

}  // namespace

SearchArguments::SearchArguments(std::span<const Setting> table, std::vector<std::string> arguments)
    : options(table, before_separator(arguments)) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator != arguments.end()) program.assign(separator + 1, arguments.end());
  if (options.has("help")) return;
  if (options.words().empty())
    throw_error(ErrorCode::invalid_argument, "which search? --help lists them");
  if (options.words().size() > 1)
    throw_error(ErrorCode::invalid_argument, "'{}' is one word too many; a program comes after --",
                options.words()[1]);
  search = options.words()[0];
}

std::vector<Setting> search_settings(std::span<const Setting> more) {
  std::vector<Setting> all(std::begin(kSearchSettings), std::end(kSearchSettings));
  all.insert(all.end() - 3, more.begin(), more.end());
  return all;
}

const SearchRow& find_search(std::span<const SearchRow> rows, const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& row : rows) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  throw_unknown_name("search", name, known, ErrorCode::invalid_argument);
}

hps::SearchPlan plan_of(const SearchArguments& arguments, const SearchRow& row) {
  const Options& options = arguments.options;
  hps::SearchPlan plan;
  plan.search = row.name;
  plan.problem = options.text("problem").value_or("");
  plan.run = options.text("run").value_or("");
  take_algorithm(options, row, plan.algorithm);
  plan.max_evals = options.integer("max-evals", -1).value_or(1'000'000);
  if (const auto seconds = options.number("timeout", 0))
    plan.timeout = std::chrono::duration<double>(*seconds);
  plan.seed = static_cast<std::uint64_t>(options.integer("seed", 0).value_or(0));
  plan.cache_key = options.text("cache-key").value_or("uuid");
  plan.log_dir = fs::absolute(options.text("log-dir").value_or(".")).lexically_normal();
  if (plan.log_dir.filename().empty()) plan.log_dir = plan.log_dir.parent_path();
  plan.resume = options.has("resume");
  plan.warm_start = options.text("warm-start").value_or("");
  auto& how = plan.evaluator;
  how.method = evaluator_name(options.text("evaluator").value_or("process"));
  how.num_workers = integer_of(options, "num-workers", 1, 0);
  how.num_nodes_per_eval = integer_of(options, "num-nodes-per-eval", 1, 1);
  how.num_ranks_per_node = integer_of(options, "num-ranks-per-node", 1, 1);
  how.num_threads_per_rank = integer_of(options, "num-threads-per-rank", 1, 1);
  how.num_evals_per_node = integer_of(options, "num-evals-per-node", 1, 1);
  how.num_gpus_per_task = options.number("num-gpus-per-task", 0).value_or(0);
  how.timeout =
      std::chrono::duration<double>(60 * options.number("eval-timeout-minutes", 0).value_or(4096));
  if (const auto hosts = options.text("hosts"))
    for (std::size_t start = 0; start <= hosts->size();) {
      const auto comma = std::min(hosts->find(',', start), hosts->size());
      how.hosts.push_back(hosts->substr(start, comma - start));
      start = comma + 1;
    }
  plan.kolo = program_beside("kolo");
  return plan;
}

int run_and_show(hps::SearchPlan plan, const Options& options) {
  const bool json = options.has("json"), quiet = options.has("quiet");
  plan.observers = observers_for(json, quiet || plan.agent > 0);
  plan.interrupted = catch_interrupts();
  const std::string folder = plan.log_dir.string();
  const std::string who = plan.agents > 1 ? fmt::format("agent {}: ", plan.agent) : "";
  const auto summary = hps::run_search(std::move(plan));
  if (summary.interrupted) {
    fmt::print(stderr, "stopped after {} evaluations; --resume goes on\n", summary.evaluations);
    return 130;
  }
  if (json) return 0;
  fmt::print("{}{} evaluations, {} failed{}; {}/results.csv\n", who, summary.evaluations,
             summary.failures,
             summary.cached > 0 ? fmt::format(", {} known before", summary.cached) : "", folder);
  if (summary.best)
    fmt::print("{}best: objective {} of evaluation {}: {}\n", who, summary.best->objectives.front(),
               summary.best->job_id, summary.best->parameters.to_string());
  // A search none of whose evaluations worked has failed.
  return summary.evaluations > 0 && summary.failures == summary.evaluations ? 1 : 0;
}

void print_search_help(std::string_view usage, std::string_view about,
                       std::span<const SearchRow> rows, std::span<const Setting> table) {
  fmt::print("{}\n\nUsage: {}\n\nSearches:\n", about, usage);
  for (const auto& row : rows) fmt::print("  {:<14} {}\n", row.name, row.summary);
  fmt::print("\nOptions:\n{}", help_text(table));
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
                "{} is not there: this kolo was built without libtorch (-DKOLO_WITH_TORCH=ON)",
                beside.string());
  return beside.string();
}

}  // namespace kolo::app

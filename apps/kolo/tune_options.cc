// description() merges in the order of precedence: first the file, then every option that was
// given, then the program. Options are copied by a rule instead of one by one: the key is the long
// name with _ for -, unless the row names another. kNotDescribed lists those that are no settings
// of a study or need a conversion; --stop and --resources are merged entry by entry into what the
// file has. Only options with a given value are copied, since defaults would override the file.
#include "tune_options.h"

#include <algorithm>

#include "base/errors.h"
#include "base/words.h"
#include "base/yaml.h"
#include "names.h"
#include "study_store.h"

namespace kolo::app {
namespace {

using cli::Option;
using namespace cli::rows;
using cli::OptionSet;

/// Other words begin the program.
bool is_description(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

constexpr Option<TuneOptions> kTuneArguments[] = {
    {&TuneOptions::file, "STUDY.yaml", "",
     "A file that describes the whole study (docs/tune.md). Options win over it.", is_optional,
     fits(is_description)},
    {&TuneOptions::program, "PROGRAM", "",
     "The program that each trial runs, and its arguments. {NAME} in an argument is replaced by "
     "the "
     "value of that hyperparameter.",
     is_optional, takes(cli::Takes::program)},
};

// The names of these options, with _ for -, are the keys of the description; some have others.
constexpr Option<TuneOptions> kTuneSearch[] = {
    {&TuneOptions::space, "space", "FILE",
     "Read the hyperparameters and their ranges from a YAML or JSON file (docs/search.md)."},
    {&TuneOptions::metric, "metric", "NAME",
     "Optimise this metric among those that trials report."},
    {&TuneOptions::mode, "mode", "min|max",
     "Look for small (min) or for large (max) values of the metric.", choices("min|max")},
    {&TuneOptions::num_samples, "num-samples", "N",
     "Run N trials, or go N times through the grid if the space has one; -1 goes on until the "
     "study is stopped.",
     fallback("1"), least(-1)},
    {&TuneOptions::search, "search", "NAME[:SETTING=VALUE,…]",
     "Choose what to try next by this sampler; `kolo list samplers` shows the names.",
     fallback("grid"), names(sampler_names)},
    {&TuneOptions::scheduler, "scheduler", "NAME[:SETTING=VALUE,…]",
     "Stop, pause or clone trials by this scheduler; `kolo list schedulers` shows the names.",
     fallback("fifo"), names(scheduler_names)},
    {&TuneOptions::seed, "seed", "N", "Draw the random numbers of the search from this seed.",
     fallback("0"), least(0)},
};

constexpr Option<TuneOptions> kTuneTrials[] = {
    {&TuneOptions::stop, "stop", "METRIC=LIMIT",
     "End a trial as soon as this metric reaches the limit."},
    {&TuneOptions::trial_time_limit, "trial-time-limit", "SECONDS",
     "End a trial that runs longer, and count it as failed.", least(0)},
    {&TuneOptions::max_failures, "max-failures", "N",
     "Start a trial again up to N times after a failure; -1 sets no limit.", fallback("0"),
     least(-1)},
    {&TuneOptions::fail_fast, "fail-fast", "", "End the study when the first trial fails."},
    {&TuneOptions::give_up_after, "give-up-after", "N",
     "End the study when N trials have failed and none has succeeded; 0 never gives up.",
     fallback("20"), least(0)},
    {&TuneOptions::keep_checkpoints, "keep-checkpoints", "N",
     "Keep the N newest checkpoints of each trial.", keys("keep_checkpoints_num"), fallback("all"),
     least(-1)},
    {&TuneOptions::restore, "restore", "DIRECTORY",
     "Start every trial from the checkpoint in this directory."},
};

constexpr Option<TuneOptions> kTuneResources[] = {
    {&TuneOptions::np, "np", "N|LOW..HIGH",
     "Run each trial as N ranks, as `kolo run -np N` does. With LOW..HIGH the number changes while "
     "a trial runs (docs/elastic.md).",
     aliases("-np"), fallback("1")},
    {&TuneOptions::reuse_workers, "reuse-workers", "",
     "With --np LOW..HIGH: when a trial ends, give its ranks to the best running trials. Running "
     "trials lose ranks only when others wait to start."},
    {&TuneOptions::allocation, "allocation", "NAME",
     "With --np LOW..HIGH: share free ranks out evenly (distribute), give them to the best trials "
     "(top_job), or hand over only the ranks of trials that have ended (reuse).",
     choices("distribute|top_job|reuse"), fallback("distribute")},
    {&TuneOptions::virtual_ranks, "virtual-ranks", "N",
     "With --np LOW..HIGH: compute each step in N parts, so that results do not depend on the "
     "number of ranks; 0 leaves it to the program.",
     fallback("HIGH"), least(0), most(65'536)},
    {&TuneOptions::hosts, "hosts", "HOST:SLOTS,…",
     "Run trials on these hosts, which are reached by ssh; a slot holds one processor of a trial.",
     aliases("-H"), fallback("this machine")},
    {&TuneOptions::cluster, "cluster", "NAME",
     "Run trials on the hosts of this cluster, which `kolo up` made; each trial reserves its "
     "slots.",
     names(cluster_names)},
    {&TuneOptions::executor, "executor", "NAME",
     "Run trials by this executor; `kolo list executors` shows the names.", aliases("--evaluator"),
     fallback("process, or ranks with --np"), names(executor_names)},
    {&TuneOptions::cpus, "cpus", "N", "Reserve N cores for each trial.",
     fallback("one for each rank"), least(0)},
    {&TuneOptions::gpus, "gpus", "N",
     "Reserve N GPUs for each trial, which finds them in CUDA_VISIBLE_DEVICES. Parts of one can be "
     "shared.",
     fallback("0"), least(0)},
    {&TuneOptions::resources, "resources", "NAME=AMOUNT",
     "Reserve this amount of a named resource of the cluster's hosts for each trial."},
    {&TuneOptions::total_cpus, "total-cpus", "N", "Use at most N cores for the whole study.",
     fallback("all of this machine"), least(0)},
    {&TuneOptions::total_gpus, "total-gpus", "N", "Use at most N GPUs for the whole study.",
     fallback("all of this machine"), least(0)},
    {&TuneOptions::max_concurrent, "max-concurrent", "N", "Run at most N trials at the same time.",
     fallback("as many as the resources allow"), least(0)},
};

constexpr Option<TuneOptions> kTuneStudy[] = {
    {&TuneOptions::name, "name", "NAME", "Give the study this name.",
     fallback("the program and the date")},
    {&TuneOptions::time_budget, "time-budget", "SECONDS", "End the study after this many seconds.",
     least(0)},
    {&TuneOptions::resume, "resume", "",
     "Continue the study with this name if it exists; otherwise start it. Inside a job this is the "
     "default."},
    {&TuneOptions::local_dir, "local-dir", "DIRECTORY",
     "Keep the files of trials in this directory.", variables("RESULTS"),
     fallback("~/kolo_results")},
};

constexpr Option<WatchOptions> kWatchRows[] = {
    {&WatchOptions::json, "json", "", "Print events as JSON, one object on each line."},
    {&WatchOptions::quiet, "quiet", "", "Print the result alone.", aliases("-q")},
    {&WatchOptions::dashboard, "dashboard", "",
     "Show the study in a browser while it runs: print the address to open."},
};

constexpr Option<ResumeOptions> kResumeRows[] = {
    {&ResumeOptions::num_samples, "num-samples", "N",
     "Run N trials in total; a larger number than before extends a finished study.",
     fallback("as before"), least(-1)},
    {&ResumeOptions::hosts, "hosts", "HOST:SLOTS,…", "Run trials on these hosts from now on.",
     aliases("-H"), fallback("as before")},
    {&ResumeOptions::cluster, "cluster", "NAME", "Run trials on this cluster from now on.",
     fallback("as before"), names(cluster_names)},
    {&ResumeOptions::errored, "errored", "", "Run the trials that failed again."},
};

/// Options that are no keys of a description.
constexpr std::string_view kNotDescribed[] = {"space", "stop",  "resources", "resume",
                                              "json",  "quiet", "dashboard"};

Json number_of(std::string_view what, const std::string& text) {
  const Json value = try_parse_json(text).value_or(Json());
  if (!value.is_number())
    throw_error(ErrorCode::invalid_argument, "{} '{}' is not a number", what, text);
  return value;
}

struct AsJson {
  template <class Value>
  Json operator()(const Value* value) const {
    return *value;
  }
  template <class Value>
  Json operator()(const std::optional<Value>* value) const {
    return **value;
  }
  Json operator()(const std::filesystem::path* path) const { return path->string(); }
};

}  // namespace

void WatchOptions::declare(OptionSet& set) { set.add("Output", kWatchRows, *this); }

void TuneOptions::declare(OptionSet& set) {
  set.add("Arguments", kTuneArguments, *this);
  set.add("Search", kTuneSearch, *this);
  set.add("Trials", kTuneTrials, *this);
  set.add("Resources", kTuneResources, *this);
  set.add("Study", kTuneStudy, *this);
  set.add("Study", kStorage, &storage);
  watch.declare(set);
}

Json TuneOptions::description(const OptionSet& given) const {
  Json all = Json::object();
  if (!file.empty()) all = load_yaml(file);
  if (!all.is_object())
    throw_error(ErrorCode::invalid_argument, "{}: must be a map of settings", file);
  // A path in a file is relative to that file, unless the file says where programs start.
  if (auto words = all.find("program"); words != all.end() && words->is_array() &&
                                        !words->empty() && words->front().is_string() &&
                                        !all.contains("directory"))
    words->front() = absolute_program(words->front().get<std::string>(),
                                      std::filesystem::absolute(file).parent_path());
  for (const auto& row : given.rows()) {
    const auto& text = row.text;
    if (row.given.empty() || text.is_positional() || text.details.is_file ||
        std::find(std::begin(kNotDescribed), std::end(kNotDescribed), text.name) !=
            std::end(kNotDescribed))
      continue;
    std::string key(text.details.keys.empty() ? text.name : text.details.keys);
    std::replace(key.begin(), key.end(), '-', '_');
    all[key] = std::visit(AsJson{}, row.value);
  }
  if (!space.empty()) all["space"] = load_yaml(space);
  for (const auto& limit : stop) {
    const auto equals = limit.find('=');
    if (equals == std::string::npos)
      throw_error(ErrorCode::invalid_argument, "--stop {}: must be METRIC=LIMIT", limit);
    all["stop"][limit.substr(0, equals)] = number_of("--stop: the limit", limit.substr(equals + 1));
  }
  for (const auto& amount : resources) {
    const auto equals = amount.find('=');
    if (equals == std::string::npos)
      throw_error(ErrorCode::invalid_argument, "--resources {}: must be NAME=AMOUNT", amount);
    all["resources"][amount.substr(0, equals)] =
        number_of("--resources: the amount", amount.substr(equals + 1));
  }
  if (!program.empty()) all["program"] = program;
  return all;
}

void ResumeOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyArgument, &study);
  set.add("Options", kResumeRows, *this);
  set.add("Options", kStorage, &storage);
  watch.declare(set);
}

}  // namespace kolo::app

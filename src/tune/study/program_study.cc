#include "tune/study/program_study.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/registry.h"
#include "base/subprocess.h"
#include "cluster/members.h"
#include "kolo/random.h"
#include "launch/allocation.h"
#include "search/space/json_value.h"
#include "tune/executor/executors.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/study/cluster_study.h"
#include "tune/study/rank_sharing.h"
#include "tune/study/resource_pool.h"
#include "tune/study/study.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kKeys[] = {"name",
                                      "space",
                                      "metric",
                                      "mode",
                                      "num_samples",
                                      "search",
                                      "scheduler",
                                      "time_attr",
                                      "stop",
                                      "time_budget",
                                      "trial_time_limit",
                                      "seed",
                                      "np",
                                      "virtual_ranks",
                                      "reuse_workers",
                                      "allocation",
                                      "executor",
                                      "hosts",
                                      "cluster",
                                      "resources",
                                      "program",
                                      "directory",
                                      "cpus",
                                      "gpus",
                                      "total_cpus",
                                      "total_gpus",
                                      "max_concurrent",
                                      "max_failures",
                                      "fail_fast",
                                      "keep_checkpoints_num",
                                      "checkpoint_score_attr",
                                      "points_to_evaluate",
                                      "restore",
                                      "local_dir",
                                      "storage",
                                      "grace",
                                      "loggers"};
constexpr const char* kWhere = "the study's description";

template <class T>
void take(const Json& from, const char* key, T& into) {
  if (from.contains(key) && !from.at(key).is_null()) into = json_field<T>(from, key, kWhere);
}

std::map<std::string, Value> settings_of(const Json& algorithm, std::string_view what) {
  std::map<std::string, Value> settings;
  if (!algorithm.contains("settings")) return settings;
  if (!algorithm.at("settings").is_object())
    throw_error(ErrorCode::invalid_argument, "{}: settings of the {} must be a map", kWhere, what);
  for (const auto& [key, value] : algorithm.at("settings").items())
    settings.emplace(key, search::value_from_json(value));
  return settings;
}

/// A name, a name with settings in one text, or an object.
Json algorithm_of(const Json& value, std::string_view what) {
  if (value.is_string()) return parse_algorithm(value.get<std::string>());
  if (value.is_object() && value.contains("name")) return value;
  throw_error(ErrorCode::invalid_argument,
              "{}: the {} must be a name, or a map with the key 'name'", kWhere, what);
}

void take_objectives(const Json& json, Options& options) {
  if (!json.contains("metric")) return;
  const Json& metric = json.at("metric");
  if (metric.is_string()) {
    options.metric = metric.get<std::string>();
    if (json.contains("mode")) options.mode = json_field<std::string>(json, "mode", kWhere);
    return;
  }
  const Json modes = json.value("mode", Json::array());
  if (!metric.is_array() || !modes.is_array() || metric.size() != modes.size())
    throw_error(ErrorCode::invalid_argument,
                "{}: when 'metric' is a list, 'mode' must be a list of the same length", kWhere);
  for (std::size_t i = 0; i < metric.size(); ++i) {
    if (!metric[i].is_string() || (modes[i] != "min" && modes[i] != "max"))
      throw_error(ErrorCode::invalid_argument,
                  "{}: 'metric' is a list of names, and 'mode' one of min and max", kWhere);
    options.objectives.push_back({metric[i].get<std::string>(), modes[i] == "max"
                                                                    ? search::Direction::maximize
                                                                    : search::Direction::minimize});
  }
}

/// "4" or "1..4"; a number, or a list of the least and the most. Throws invalid_argument.
RankRange ranks_of(const Json& json) {
  RankRange range;
  if (json.is_number_integer()) {
    range = {json.get<int>(), json.get<int>()};
  } else if (json.is_array() && json.size() == 2 && json[0].is_number_integer() &&
             json[1].is_number_integer()) {
    range = {json[0].get<int>(), json[1].get<int>()};
  } else if (json.is_string()) {
    const auto text = json.get<std::string>();
    const auto dots = text.find("..");
    const auto number = [](std::string_view digits) {
      int value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
    };
    range.least = number(std::string_view(text).substr(0, dots));
    range.most =
        dots == std::string::npos ? range.least : number(std::string_view(text).substr(dots + 2));
  }
  if (range.least < 1 || range.most < range.least)
    throw_error(ErrorCode::invalid_argument,
                "np must be a number of ranks, at least 1, or a range of them such as 1..4, not {}",
                json.is_string() ? json.get<std::string>() : json_text(json));
  return range;
}

void take_allocation(const Json& json, Scheduling& scheduler) {
  bool reuses = false;
  take(json, "reuse_workers", reuses);
  if (reuses) scheduler.settings.insert_or_assign(kReuseWorkers, true);
  std::string name;
  take(json, "allocation", name);
  if (name.empty()) return;
  if (name == "reuse")
    scheduler.allocation = ReuseWorkers();
  else if (name == "distribute")
    scheduler.allocation = DistributeResources();
  else if (name == "top_job")
    scheduler.allocation = DistributeResourcesToTopJob();
  else
    throw_error(ErrorCode::invalid_argument,
                "{}: 'allocation' is distribute, top_job or reuse, not '{}'", kWhere, name);
}

int threads_per_rank(const ProgramStudy& study) {
  const auto& resources = study.options.resources_per_trial;
  const int ranks =
      resources.ranks.most > 0 ? 1 : study.np;  // of an elastic one, they are of a rank
  return std::max(1, static_cast<int>(std::ceil(resources.cpu / ranks)));
}

/// Those of the cluster or, if nothing else was said, of the allocation that this process is in.
void find_hosts(ProgramStudy& study) {
  const auto& resources = study.options.resources_per_trial;
  if (!study.cluster.empty())
    study.hosts = cluster::hosts_of_cluster(
        study.cluster, amounts_of_rank(resources, resources.ranks.most > 0 ? 1 : study.np,
                                       threads_per_rank(study)));
  if (!study.hosts.empty() || study.options.total_resources ||
      canonical_executor(study.executor) == "jobs")
    return;
  if (auto allocation = launch::find_whole_allocation()) {
    study.hosts = std::move(allocation->hosts);
    study.batch_system = allocation->system;
  }
}

TrialShape elastic_shape_of(const ProgramStudy& study) {
  const auto& resources = study.options.resources_per_trial;
  TrialShape shape;
  shape.ranks_per_node = study.np;
  shape.threads_per_rank = std::max(1, static_cast<int>(std::ceil(resources.cpu)));
  shape.most_ranks = resources.ranks.most;
  shape.virtual_ranks = study.virtual_ranks;
  shape.gpus = resources.gpu;
  shape.hosts = study.hosts;
  shape.batch_system = study.batch_system;
  shape.cluster = study.cluster;
  if (!study.cluster.empty())
    shape.each_rank = amounts_of_rank(resources, 1, threads_per_rank(study));
  return shape;
}

/// A trial is on one host if it fits there, else on as few as possible, with as many ranks on each.
TrialShape shape_of(const ProgramStudy& study) {
  const auto& resources = study.options.resources_per_trial;
  if (resources.ranks.most > 0) return elastic_shape_of(study);
  TrialShape shape;
  shape.ranks_per_node = study.np;
  shape.threads_per_rank = threads_per_rank(study);
  shape.gpus = resources.gpu;
  shape.hosts = study.hosts;
  shape.batch_system = study.batch_system;
  shape.cluster = study.cluster;
  if (!study.cluster.empty()) {
    shape.each_rank = amounts_of_rank(resources, study.np, shape.threads_per_rank);
    shape.follows_cluster = !study.options.total_resources;
  }
  if (study.hosts.empty()) return shape;
  for (shape.nodes = 1; shape.nodes <= study.np; ++shape.nodes) {
    shape.ranks_per_node = study.np / shape.nodes;
    if (study.np % shape.nodes == 0 && trials_at_once(shape) > 0) return shape;
  }
  std::string slots;
  for (const auto& host : study.hosts)
    slots += fmt::format("{}{}:{}", slots.empty() ? "" : ",", host.name, host.slots);
  throw_error(ErrorCode::invalid_argument,
              "a trial of {} ranks with {} processors each does not fit on the hosts {}: it takes "
              "the same number of slots on one or more of them",
              study.np, shape.threads_per_rank, slots);
}

ExecutorSetup executor_setup(const ProgramStudy& study, const ProgramRun& run) {
  ExecutorSetup setup;
  setup.directory = study.directory;
  setup.metric = study.first_metric();
  setup.last_line_reports = true;
  setup.shape = shape_of(study);
  setup.kolo = run.kolo;
  setup.time_limit = study.options.trial_time_limit;
  setup.command = [program = study.program](const StartOrder& order) {
    return TrialCommand{fill_in(program, order.config, order.trial_id, order.directory.string(),
                                order.checkpoint ? order.checkpoint->string() : "")};
  };
  return setup;
}

/// The launchers have the resources; the study limits how many trials it gives them at once.
int trials_as_jobs(const Options& options) {
  if (options.max_concurrent_trials > 0) return static_cast<int>(options.max_concurrent_trials);
  const double each = options.resources_per_trial.cpu;
  return each > 0 ? std::max(1, static_cast<int>(machine_resources().cpu / each)) : 1;
}

}  // namespace

std::vector<std::string_view> description_keys() { return {std::begin(kKeys), std::end(kKeys)}; }

Json parse_algorithm(std::string_view text) {
  const auto colon = text.find(':');
  Json algorithm{{"name", std::string(text.substr(0, colon))}};
  if (colon == std::string_view::npos) return algorithm;
  std::istringstream rest{std::string(text.substr(colon + 1))};
  std::vector<std::string> words;
  for (std::string word; std::getline(rest, word, ',');) words.push_back(word);
  algorithm["settings"] = search::json_from_value(parse_assignments(words));
  return algorithm;
}

ProgramStudy ProgramStudy::from_json(const Json& json) {
  if (!json.is_object())
    throw_error(ErrorCode::invalid_argument, "{} must be a map of settings", kWhere);
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
    const auto near = nearest_name(key, description_keys());
    throw_error(ErrorCode::invalid_argument, "{}: there is no setting '{}'{}", kWhere, key,
                near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  ProgramStudy study;
  Options& options = study.options;
  study.description = json;
  take(json, "name", options.name);
  take_objectives(json, options);
  take(json, "num_samples", options.num_samples);
  take(json, "seed", options.seed);
  if (json.contains("search")) {
    const Json algorithm = algorithm_of(json.at("search"), "search");
    options.search_alg.name = json_field<std::string>(algorithm, "name", kWhere);
    options.search_alg.settings = settings_of(algorithm, "search");
  }
  if (json.contains("points_to_evaluate"))
    for (const Json& point : json.at("points_to_evaluate"))
      options.search_alg.points_to_evaluate.push_back(search::value_from_json(point));
  if (json.contains("scheduler")) {
    const Json algorithm = algorithm_of(json.at("scheduler"), "scheduler");
    options.scheduler.name = json_field<std::string>(algorithm, "name", kWhere);
    options.scheduler.settings = settings_of(algorithm, "scheduler");
  }
  if (json.contains("space"))
    options.space = search::Space::from_json(json_text(json.at("space")), "the space");
  else if (options.scheduler.name != "pbt_replay")  // which knows its configurations
    throw_error(
        ErrorCode::invalid_argument,
        "the study has no search space; give one with --space, or as 'space' in its description");
  take(json, "time_attr", options.scheduler.time_attr);
  if (json.contains("stop")) {
    if (!json.at("stop").is_object())
      throw_error(ErrorCode::invalid_argument, "{}: 'stop' is a map of metrics to limits", kWhere);
    for (const auto& limit : json.at("stop").items())
      options.stop.emplace(limit.key(), json_field<double>(json.at("stop"), limit.key().c_str(),
                                                           "'stop' of the study"));
  }
  const auto take_seconds = [&json](const char* key, auto& seconds) {
    if (json.contains(key))
      seconds = std::chrono::duration<double>(json_field<double>(json, key, kWhere));
  };
  take_seconds("time_budget", options.time_budget);
  take_seconds("trial_time_limit", options.trial_time_limit);
  if (json.contains("np")) {
    const RankRange ranks = ranks_of(json.at("np"));
    study.np = ranks.least;
    if (ranks.most > ranks.least) options.resources_per_trial.ranks = ranks;
  }
  const bool is_elastic = options.resources_per_trial.ranks.most > 0;
  study.virtual_ranks = options.resources_per_trial.ranks.most;
  take(json, "virtual_ranks", study.virtual_ranks);
  if (json.contains("virtual_ranks") && !is_elastic)
    throw_error(ErrorCode::invalid_argument,
                "{}: 'virtual_ranks' is for trials whose np is a range, such as 1..4", kWhere);
  if (is_elastic && study.virtual_ranks != 0 &&
      study.virtual_ranks < options.resources_per_trial.ranks.most)
    throw_error(ErrorCode::invalid_argument,
                "a trial may have {} ranks, so it needs at least as many virtual ranks, not {}",
                options.resources_per_trial.ranks.most, study.virtual_ranks);
  take_allocation(json, options.scheduler);
  take(json, "executor", study.executor);
  std::vector<std::string> hosts;  // one text as on the command line, or several
  if (json.contains("hosts") && json.at("hosts").is_string())
    hosts.push_back(json.at("hosts").get<std::string>());
  else
    take(json, "hosts", hosts);
  study.hosts = launch::parse_hosts(hosts);
  take(json, "cluster", study.cluster);
  if (!study.cluster.empty() && !study.hosts.empty())
    throw_error(ErrorCode::invalid_argument, "{}: 'hosts' and 'cluster' exclude each other",
                kWhere);
  options.resources_per_trial.cpu = is_elastic ? 1 : study.np;
  take(json, "cpus", options.resources_per_trial.cpu);
  take(json, "gpus", options.resources_per_trial.gpu);
  take(json, "resources", options.resources_per_trial.custom);
  if (json.contains("total_cpus") || json.contains("total_gpus")) {
    options.total_resources = machine_resources();
    take(json, "total_cpus", options.total_resources->cpu);
    take(json, "total_gpus", options.total_resources->gpu);
  }
  take(json, "max_concurrent", options.max_concurrent_trials);
  take(json, "max_failures", options.max_failures);
  take(json, "fail_fast", options.fail_fast);
  take(json, "keep_checkpoints_num", options.keep_checkpoints_num);
  take(json, "checkpoint_score_attr", options.checkpoint_score_attr);
  take(json, "restore", options.restore);
  take(json, "local_dir", options.local_dir);
  take(json, "storage", options.storage);
  take(json, "loggers", options.loggers);
  take_seconds("grace", options.grace);
  take(json, "directory", study.directory);
  take(json, "program", study.program);
  if (study.program.empty())
    throw_error(
        ErrorCode::invalid_argument,
        "the study has no program to run; give one after --, or as 'program' in its description");
  return study;
}

std::string ProgramStudy::first_metric() const {
  return options.objectives.empty() ? options.metric : options.objectives.front().metric;
}

void check_program(const std::vector<std::string>& program, const search::Space& space,
                   const fs::path& directory) {
  check_placeholders(program, space);
  // A program whose name is a parameter is found, or not, when a trial begins.
  if (program.front().find('{') == std::string::npos)
    find_program(program.front(), environment("PATH").value_or("/usr/bin:/bin"), directory);
}

ProgramResult run_program_study(ProgramStudy study, const ProgramRun& run) {
  if (study.directory.empty()) study.directory = fs::current_path().string();
  if (study.options.space) check_program(study.program, *study.options.space, study.directory);
  const RankRange ranks = study.options.resources_per_trial.ranks;
  if (study.executor.empty()) study.executor = study.np > 1 || ranks.most > 0 ? "ranks" : "process";
  find_hosts(study);
  ExecutorSetup executor = executor_setup(study, run);
  check_executor(study.executor, executor);
  if (!study.options.total_resources) {
    const auto& each = study.options.resources_per_trial;
    if (canonical_executor(study.executor) == "jobs")
      study.options.total_resources = resources_for(trials_as_jobs(study.options), each);
    else if (!study.hosts.empty() && ranks.most > 0)
      study.options.total_resources = resources_for(
          launch::groups_at_once(study.hosts, 1, executor.shape.threads_per_rank), each);
    else if (!study.hosts.empty())
      study.options.total_resources = resources_for(trials_at_once(executor.shape), each);
  }
  StudySetup setup;
  setup.options = study.options;
  setup.spec.trainable = fs::path(study.program.front()).filename().string();
  if (study.description.contains("space")) setup.spec.space = json_text(study.description["space"]);
  study.description["directory"] = study.directory;
  Json kept = study.description;
  kept.erase("storage");  // whoever reads the study has it already, and it may hold a password
  setup.spec.command = json_text(kept);
  setup.per_trial = resources_for(std::max(1, ranks.least), study.options.resources_per_trial);
  setup.observers = run.observers;
  setup.interrupted = run.interrupted;
  setup.make_executor = [&](const ExecutorPlace& place) {
    executor.place = place;
    return make_executor(study.executor, std::move(executor));
  };
  Study running(std::move(setup));
  running.run();
  return {running.analysis(), running.was_interrupted()};
}

}  // namespace kolo::tune

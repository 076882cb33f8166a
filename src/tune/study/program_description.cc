// What `kolo tune` is told, as one JSON object: docs/tune.md lists the keys.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/errors.h"
#include "base/registry.h"
#include "search/space/json_value.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/study/program_study.h"
#include "tune/study/rank_sharing.h"
#include "tune/study/resource_pool.h"

namespace kolo::tune {
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
                                      "give_up_after",
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
  if (value.is_object() && value.contains("name")) {
    for (const auto& item : value.items())
      if (item.key() != "name" && item.key() != "settings")
        throw_error(ErrorCode::invalid_argument,
                    "{}: {}: {}. If it is a setting of the {}, put it under 'settings'", kWhere,
                    what, unknown_name("key", item.key(), {"name", "settings"}), what);
    return value;
  }
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
  if (json.is_number()) {
    range.least = range.most = whole_number<int>(json).value_or(0);
  } else if (json.is_array() && json.size() == 2) {
    range = {whole_number<int>(json[0]).value_or(0), whole_number<int>(json[1]).value_or(0)};
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

void take_seconds(const Json& json, const char* key, auto& seconds) {
  if (json.contains(key))
    seconds = std::chrono::duration<double>(json_field<double>(json, key, kWhere));
}

void check_keys(const Json& json) {
  if (!json.is_object())
    throw_error(ErrorCode::invalid_argument, "{} must be a map of settings", kWhere);
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
    const auto near = nearest_name(key, description_keys());
    throw_error(ErrorCode::invalid_argument, "{}: there is no setting '{}'{}", kWhere, key,
                near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
}

/// The space, who suggests its points, and who stops trials.
void take_search(const Json& json, Options& options) {
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
}

void take_ranks(const Json& json, ProgramStudy& study) {
  Options& options = study.options;
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
}

void take_hosts(const Json& json, ProgramStudy& study) {
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
}

void take_resources(const Json& json, ProgramStudy& study) {
  Options& options = study.options;
  options.resources_per_trial.cpu = options.resources_per_trial.ranks.most > 0 ? 1 : study.np;
  take(json, "cpus", options.resources_per_trial.cpu);
  take(json, "gpus", options.resources_per_trial.gpu);
  take(json, "resources", options.resources_per_trial.custom);
  if (json.contains("total_cpus") || json.contains("total_gpus")) {
    options.total_resources = machine_resources();
    take(json, "total_cpus", options.total_resources->cpu);
    take(json, "total_gpus", options.total_resources->gpu);
  }
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
  check_keys(json);
  ProgramStudy study;
  Options& options = study.options;
  study.description = json;
  take(json, "name", options.name);
  take_objectives(json, options);
  take(json, "num_samples", options.num_samples);
  take(json, "seed", options.seed);
  take_search(json, options);
  take_seconds(json, "time_budget", options.time_budget);
  take_seconds(json, "trial_time_limit", options.trial_time_limit);
  take_ranks(json, study);
  take_allocation(json, options.scheduler);
  take(json, "executor", study.executor);
  take_hosts(json, study);
  take_resources(json, study);
  take(json, "max_concurrent", options.max_concurrent_trials);
  take(json, "max_failures", options.max_failures);
  take(json, "fail_fast", options.fail_fast);
  take(json, "give_up_after", study.give_up_after);
  take(json, "keep_checkpoints_num", options.keep_checkpoints_num);
  take(json, "checkpoint_score_attr", options.checkpoint_score_attr);
  take(json, "restore", options.restore);
  take(json, "local_dir", options.local_dir);
  take(json, "storage", options.storage);
  take(json, "loggers", options.loggers);
  take_seconds(json, "grace", options.grace);
  take(json, "directory", study.directory);
  take(json, "program", study.program);
  if (study.program.empty())
    throw_error(
        ErrorCode::invalid_argument,
        "the study has no program to run; give one after --, or as 'program' in its description");
  return study;
}

}  // namespace kolo::tune

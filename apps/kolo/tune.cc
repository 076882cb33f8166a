// kolo tune: a study around any program. kolo resume goes on with one.
#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/yaml.h"
#include "commands.h"
#include "study_settings.h"
#include "tune/study/program_study.h"
#include "tune/study/study_spec.h"
#include "watching.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

constexpr Setting kTuneSettings[] = {
    {"space", "", "", "FILE", "", "the parameters, a YAML or JSON file (docs/search.md)"},
    {"metric", "", "", "NAME", "", "what is to be made small or large"},
    {"mode", "", "", "min|max", "", "of the metric"},
    {"num-samples", "", "", "N", "1",
     "trials, or rounds through the grid where the space has one; -1 = without end"},
    {"search", "", "", "NAME[:SETTING=VALUE,…]", "grid",
     "what to try next; `kolo list samplers` shows the names"},
    {"scheduler", "", "", "NAME[:SETTING=VALUE,…]", "fifo",
     "which trials go on; `kolo list schedulers` shows the names"},
    {"stop", "", "", "METRIC=LIMIT", "", "end a trial when its metric is at the limit", true},
    {"time-budget", "", "", "SECONDS", "", "of the whole study"},
    {"trial-time-limit", "", "", "SECONDS", "", "of one trial; beyond it it fails and is ended"},
    {"np", "-np", "", "N", "1", "ranks of each trial: each is a `kolo run` of so many"},
    {"cpus", "", "", "N", "the ranks", "that a trial takes"},
    {"gpus", "", "", "N", "0", "that a trial takes; it is told which by CUDA_VISIBLE_DEVICES"},
    {"total-cpus", "", "", "N", "this machine's", "that the study may use"},
    {"total-gpus", "", "", "N", "this machine's", "that the study may use"},
    {"max-concurrent", "", "", "N", "what the resources allow", "trials at once"},
    {"max-failures", "", "", "N", "0", "restarts of a trial; -1 = without end"},
    {"fail-fast", "", "", "", "", "end the study with the first trial that fails"},
    {"keep-checkpoints", "", "", "N", "all", "of each trial"},
    {"restore", "", "", "DIRECTORY", "", "a checkpoint from which every trial begins"},
    {"seed", "", "", "N", "0", "of the search"},
    {"name", "", "", "NAME", "the program and the date", "of the study"},
    {"resume", "", "", "", "", "go on with the study of this name, if there is one"},
    {"local-dir", "", "RESULTS", "DIRECTORY", "~/kolo_results", "where trials have their files"},
    kStorageSetting,
    {"json", "", "", "", "", "print events, one JSON object per line"},
    {"quiet", "-q", "", "", "", "print the result alone"},
    kHelpSetting,
};

constexpr Setting kResumeSettings[] = {
    kStorageSetting,
    {"num-samples", "", "", "N", "as before", "more of them extend a finished study"},
    {"errored", "", "", "", "", "try trials that failed again"},
    {"json", "", "", "", "", "print events, one JSON object per line"},
    {"quiet", "-q", "", "", "", "print the result alone"},
    kHelpSetting,
};

/// The study ran, but trials failed.
constexpr int kFailedTrials = 1;

int run_study(tune::ProgramStudy study, const Settings& settings) {
  tune::ProgramRun run;
  run.observers = observers_for(settings.flag("json"), settings.flag("quiet"));
  run.interrupted = catch_interrupts();
  run.kolo = fs::read_symlink("/proc/self/exe").string();
  const auto [analysis, stopped] = tune::run_program_study(std::move(study), run);
  const bool json = settings.flag("json");
  if (stopped) {
    fmt::print(stderr, "stopped; `kolo resume {}` goes on\n", analysis.name());
    return 130;
  }
  const auto failed = analysis.errors().size();
  if (failed > 0)
    fmt::print(stderr, "{} of {} trials failed; the first said: {}\n", failed,
               analysis.trials().size(), analysis.errors().front()->error);
  if (analysis.objectives().empty() || failed == analysis.trials().size())
    return failed > 0 ? kFailedTrials : 0;
  if (!json) {
    const auto& best = analysis.best_trial();
    const auto& metric = analysis.objectives().front().metric;
    fmt::print("best: {} {} of trial {}: {}\n", metric,
               best.last_result.at_path(metric).to_string(), best.id, best.config.to_string());
  }
  return failed > 0 ? kFailedTrials : 0;
}

/// Numbers as numbers, for the description.
Json number_text(const std::string& text, std::string_view option) {
  try {
    const Json value = Json::parse(text);
    if (value.is_number()) return value;
  } catch (const Json::exception&) {
    // Said below.
  }
  throw_error(ErrorCode::invalid_argument, "--{}: '{}' is not a number", option, text);
}

/// What was typed, over what the file says.
Json description_of(const Settings& settings, Json description) {
  constexpr std::pair<const char*, const char*> kNumbers[] = {
      {"num-samples", "num_samples"},
      {"time-budget", "time_budget"},
      {"trial-time-limit", "trial_time_limit"},
      {"np", "np"},
      {"cpus", "cpus"},
      {"gpus", "gpus"},
      {"total-cpus", "total_cpus"},
      {"total-gpus", "total_gpus"},
      {"max-concurrent", "max_concurrent"},
      {"max-failures", "max_failures"},
      {"keep-checkpoints", "keep_checkpoints_num"},
      {"seed", "seed"}};
  for (const auto& [option, key] : kNumbers)
    if (auto text = settings.text(option)) description[key] = number_text(*text, option);
  constexpr std::pair<const char*, const char*> kTexts[] = {
      {"metric", "metric"},   {"mode", "mode"},           {"search", "search"},
      {"name", "name"},       {"scheduler", "scheduler"}, {"local-dir", "local_dir"},
      {"storage", "storage"}, {"restore", "restore"}};
  for (const auto& [option, key] : kTexts)
    if (auto text = settings.text(option)) description[key] = *text;
  if (settings.flag("fail-fast")) description["fail_fast"] = true;
  if (auto file = settings.text("space")) description["space"] = load_yaml(*file);
  for (const auto& limit : settings.texts("stop")) {
    const auto equals = limit.find('=');
    if (equals == std::string::npos)
      throw_error(ErrorCode::invalid_argument, "--stop {}: METRIC=LIMIT is needed", limit);
    description["stop"][limit.substr(0, equals)] = number_text(limit.substr(equals + 1), "stop");
  }
  return description;
}

void print_tune_help() {
  fmt::print(
      "Tries PROGRAM with many settings, and finds good ones.\n\n"
      "Usage: kolo tune [OPTIONS] [STUDY.yaml] [-- PROGRAM ARGUMENTS]\n\n"
      "  kolo tune --space space.yaml --metric loss --mode min --num-samples 50 --search tpe \\\n"
      "      --scheduler asha -- ./train --lr {{lr}} --batch-size {{batch}}\n\n"
      "{{NAME}} in the arguments is the value of a parameter; KOLO_PARAM_NAME and the file\n"
      "$KOLO_TRIAL_CONFIG say the same. The program reports by `kolo report loss=0.3`, by JSON\n"
      "lines on descriptor $KOLO_TRIAL_FD, or by its last line of output (docs/tune.md).\n\n"
      "Options:\n{}",
      help_text(kTuneSettings));
}

}  // namespace

int run_command_tune(const Arguments& arguments) {
  auto [options, rest] = split_arguments(kTuneSettings, arguments);
  const bool separated = std::find(arguments.begin(), arguments.end(), "--") != arguments.end();
  std::vector<std::string> program = rest;
  Json description = Json::object();
  // A word before the "--" is a file with the study's description.
  const auto is_description = [](const std::string& word) {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
  };
  if (!program.empty() && is_description(program.front())) {
    description = load_yaml(program.front());
    if (!description.is_object())
      throw_error(ErrorCode::invalid_argument, "{}: a map of settings is needed", program.front());
    program.erase(program.begin());
    if (auto [more, after] = split_arguments(kTuneSettings, program); separated || !more.empty()) {
      options.insert(options.end(), more.begin(), more.end());
      program = after;
    }
  }
  const Settings settings(kTuneSettings, options, "");
  if (settings.flag("help")) {
    print_tune_help();
    return 0;
  }
  description = description_of(settings, std::move(description));
  if (!program.empty()) description["program"] = program;
  auto study = tune::ProgramStudy::from_json(description);
  if (settings.flag("resume")) study.options.resume = tune::Resume::automatic;
  return run_study(std::move(study), settings);
}

int run_command_resume(const Arguments& arguments) {
  const ParsedCommand command(kResumeSettings, arguments, "kolo resume [OPTIONS] STUDY", 1, 1);
  if (command.help) return 0;
  Json description;
  {
    const OpenStore open(command.settings);
    const auto spec = tune::StudySpec::from_json(open.store->at(command.words[0]).spec);
    if (spec.command.empty())
      throw_error(ErrorCode::failed_precondition,
                  "study {} belongs to a C++ program, which resumes it by Resume::automatic",
                  command.words[0]);
    description = parse_json(spec.command, "the study");
  }
  description["name"] = command.words[0];
  if (auto storage = command.settings.text("storage")) description["storage"] = *storage;
  if (auto samples = command.settings.text("num-samples"))
    description["num_samples"] = number_text(*samples, "num-samples");
  auto study = tune::ProgramStudy::from_json(description);
  study.options.resume =
      command.settings.flag("errored") ? tune::Resume::errored : tune::Resume::yes;
  return run_study(std::move(study), command.settings);
}

}  // namespace kolo::app

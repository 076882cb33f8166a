// kolo tune: a study around any program. kolo resume goes on with one.
#include <fmt/format.h>

#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "commands.h"
#include "dashboard_beside.h"
#include "jobs_database.h"
#include "study_store.h"
#include "tune/study/program_study.h"
#include "tune/study/study_spec.h"
#include "tune/trial/trial_names.h"
#include "tune_options.h"
#include "watching.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

/// The study ran, but trials failed.
constexpr int kFailedTrials = 1;

int run_study(tune::ProgramStudy study, const WatchOptions& watch) {
  std::unique_ptr<dashboard::Dashboard> dashboard;
  if (watch.dashboard) {
    dashboard = dashboard_beside(study.options);
    fmt::print(stderr, "dashboard: {}\n", dashboard->address());
  }
  tune::ProgramStudyCaller run;
  run.observers = observers_for(watch.json, watch.quiet);
  run.interrupted = catch_interrupts();
  run.kolo = fs::read_symlink("/proc/self/exe").string();
  const auto [analysis, stopped, gave_up] = tune::run_program_study(std::move(study), run);
  if (stopped) {
    fmt::print(stderr, "stopped; `kolo resume {}` continues the study\n", analysis.name());
    return 130;
  }
  const auto failed = analysis.errors().size();
  if (failed > 0)
    fmt::print(stderr, "{} of {} failed{}; the first error: {}\n", failed,
               counted(static_cast<std::int64_t>(analysis.trials().size()), "trial"),
               gave_up ? ", so the study gave up (--give-up-after)" : "",
               printable_lines(analysis.errors().front()->error));
  if (gave_up || analysis.objectives().empty() || failed == analysis.trials().size())
    return failed > 0 ? kFailedTrials : 0;
  const auto& best = analysis.best_trial();
  if (!watch.json) {
    const auto& metric = analysis.objectives().front().metric;
    fmt::print("best: {} {} of trial {}: {}\n", printable(metric),
               printable(cell_text(best.last_result.at_path(metric))), best.id,
               printable(short_text(best.config)));
  }
  return failed > 0 ? kFailedTrials : 0;
}

/// A job runs again when an allocation has ended, and continues the study that it began. So a study
/// without a name is named after its job.
std::string name_in_job(const std::vector<std::string>& program) {
  const auto id = environment("KOLO_JOB_ID");
  if (!id || !environment("KOLO_DB")) return {};  // or another's variable
  auto database = open_jobs();
  const auto job = database.job(parse_job_id(*id));
  return fmt::format("{}_{}_{}", fs::path(program.front()).filename().string(),
                     tune::date_text(job.created), *id);
}

int run_tune(TuneOptions& options, OptionSet& given) {
  auto study = tune::ProgramStudy::from_json(options.description(given));
  if (study.options.name.empty()) study.options.name = name_in_job(study.program);
  if (options.resume && study.options.name.empty())
    throw_error(ErrorCode::invalid_argument,
                "--resume needs --name, the study to continue; `kolo studies` lists them");
  if (options.resume || environment("KOLO_JOB_ID")) study.options.resume = tune::Resume::automatic;
  return run_study(std::move(study), options.watch);
}

int run_resume(ResumeOptions& options) {
  Json description;
  {
    const OpenStore open(options.storage);
    const auto spec = tune::StudySpec::from_json(open.store->at(options.study).spec);
    if (spec.search.starts_with("imported"))
      throw_error(ErrorCode::failed_precondition,
                  "study {} was {}, and only its own tool can continue it", options.study,
                  spec.search);
    if (spec.command.empty())
      throw_error(ErrorCode::failed_precondition,
                  "study {} belongs to a C++ program: run that program again, with "
                  "Resume::automatic",
                  options.study);
    description = parse_json(spec.command, "the study");
  }
  description["name"] = options.study;
  if (!options.storage.empty()) description["storage"] = options.storage;
  if (options.num_samples) description["num_samples"] = *options.num_samples;
  if (!options.hosts.empty() || !options.cluster.empty()) {
    description.erase("hosts");
    description.erase("cluster");
  }
  if (!options.hosts.empty()) description["hosts"] = options.hosts;
  if (!options.cluster.empty()) description["cluster"] = options.cluster;
  auto study = tune::ProgramStudy::from_json(description);
  study.options.resume = options.errored ? tune::Resume::errored : tune::Resume::yes;
  return run_study(std::move(study), options.watch);
}

}  // namespace

constinit const Command kTune{
    .name = "tune",
    .summary = "Run a program with many hyperparameters and find good ones",
    .examples =
        "kolo tune --space space.yaml --metric loss --mode min --num-samples 50 \\\n"
        "    --search tpe --scheduler asha -- ./train --lr {lr} --batch-size {batch}\n",
    .notes =
        "A trial finds its hyperparameters in its arguments ({NAME}), in the variables "
        "KOLO_PARAM_NAME and in the file $KOLO_TRIAL_CONFIG. It reports results by `kolo "
        "report loss=0.3`, by lines of JSON on descriptor $KOLO_TRIAL_FD, or by its last line "
        "of output (docs/tune.md).",
    .options = declared<TuneOptions>,
    .run = run_declared<TuneOptions, run_tune>,
    .heading = "Commands for studies",
};

constinit const Command kResume{
    .name = "resume",
    .summary = "Continue a study that was stopped, or extend a finished one",
    .examples = "kolo resume mnist --num-samples 100\n",
    .options = declared<ResumeOptions>,
    .run = run_declared<ResumeOptions, run_resume>,
};

}  // namespace kolo::app

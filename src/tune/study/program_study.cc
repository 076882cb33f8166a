#include "tune/study/program_study.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/plural.h"
#include "base/subprocess.h"
#include "cluster/members.h"
#include "launch/allocation.h"
#include "tune/executor/executors.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/study/cluster_study.h"
#include "tune/study/giving_up.h"
#include "tune/study/resource_pool.h"
#include "tune/study/study.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

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
  if (!study.cluster.empty())
    throw_error(ErrorCode::invalid_argument,
                "a trial of {} with {} each does not fit on the hosts of cluster {}, even when "
                "nobody uses them",
                counted(study.np, "rank"), exec::describe(shape.each_rank), study.cluster);
  std::string slots;
  for (const auto& host : study.hosts)
    slots += fmt::format("{}{}:{}", slots.empty() ? "" : ",", host.name, host.slots);
  throw_error(ErrorCode::invalid_argument,
              "a trial of {} with {} each does not fit on the hosts {}: it takes the same number "
              "of slots on one or more of them",
              counted(study.np, "rank"), counted(shape.threads_per_rank, "processor"), slots);
}

ExecutorSetup executor_setup(const ProgramStudy& study, const ProgramStudyCaller& run) {
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
  return each > 0 ? std::max(1, ResourcePool(machine_resources()).capacity({.cpu = each})) : 1;
}

}  // namespace

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

ProgramResult run_program_study(ProgramStudy study, const ProgramStudyCaller& run) {
  if (study.directory.empty()) study.directory = fs::current_path().string();
  if (study.options.space) check_program(study.program, *study.options.space, study.directory);
  check_amounts(study.options.resources_per_trial, "a trial");
  if (study.options.total_resources) check_amounts(*study.options.total_resources, "a study");
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
  const auto giving_up = std::make_shared<GivingUp>(study.give_up_after);
  setup.options.stopper = [giving_up] { return std::make_unique<GivingUpStopper>(giving_up); };
  setup.observers.push_back(giving_up);
  setup.interrupted = run.interrupted;
  setup.make_executor = [&](const ExecutorPlace& place) {
    executor.place = place;
    return make_executor(study.executor, std::move(executor));
  };
  Study running(std::move(setup));
  running.run();
  return {running.analysis(), running.was_interrupted(), giving_up->is_hopeless()};
}

}  // namespace kolo::tune

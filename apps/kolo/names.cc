#include "names.h"

#include <fmt/format.h>

#include "cli/option_set.h"
#include "cluster/cluster.h"
#include "comm/transports.h"
#include "hps/problem/function_problems.h"
#include "jobs_database.h"
#include "kolo/search.h"
#include "launch/batch/batch_system.h"
#include "launch/runners.h"
#include "study_store.h"
#include "tune/executor/executors.h"
#include "tune/output/trial_log.h"

namespace kolo::app {
namespace {

using cli::NamedText;
using cli::OptionSet;

template <class Rows>
std::vector<NamedText> named(const Rows& rows) {
  std::vector<NamedText> names;
  for (const auto& row : rows) names.push_back({std::string(row.name), std::string(row.summary)});
  return names;
}

}  // namespace

std::vector<NamedText> transport_names(const OptionSet&) { return named(comm::transports()); }
std::vector<NamedText> sampler_names(const OptionSet&) { return named(search::samplers()); }
std::vector<NamedText> scheduler_names(const OptionSet&) { return named(search::schedulers()); }
std::vector<NamedText> executor_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (const auto& executor : tune::executors())
    names.push_back({std::string(executor.name),
                     fmt::format("{} (also: {})", executor.summary, executor.aliases)});
  return names;
}
std::vector<NamedText> runner_names(const OptionSet&) { return named(launch::runners().entries()); }
std::vector<NamedText> batch_system_names(const OptionSet&) {
  return named(launch::batch_systems().entries());
}
std::vector<NamedText> store_names(const OptionSet&) { return named(store::stores()); }
std::vector<NamedText> logger_names(const OptionSet&) { return named(tune::loggers()); }

std::vector<NamedText> problem_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (const auto& problem : hps::function_problems())
    names.push_back({std::string(hps::full_name(problem)), std::string(problem.summary)});
  return names;
}

std::vector<NamedText> job_state_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (auto state = jobs::JobState::created; state <= jobs::JobState::user_killed;
       state = static_cast<jobs::JobState>(static_cast<int>(state) + 1))
    names.push_back({std::string(jobs::to_string(state))});
  return names;
}

std::vector<NamedText> study_names(const OptionSet& typed) {
  const auto& given = typed.at("storage").given;
  const OpenStore open(given.empty() ? "" : given.back());
  std::vector<NamedText> names;
  for (const auto& study : open.store->studies()) names.push_back({study.name});
  return names;
}

std::vector<NamedText> application_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (const auto& one : open_jobs().applications())
    names.push_back({one.name, one.description.empty() ? one.executable : one.description});
  return names;
}

std::vector<NamedText> cluster_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (auto& name : cluster::cluster_names()) names.push_back({std::move(name)});
  return names;
}

}  // namespace kolo::app

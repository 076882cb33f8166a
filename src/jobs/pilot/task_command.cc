#include "jobs/pilot/task_command.h"

#include <fmt/ranges.h>

#include "base/words.h"
#include "launch/runners.h"

namespace kolo::jobs {
namespace {

/// kolo's names, and Balsam's for scripts that know them.
std::vector<std::string> environment_of(const Job& job, const LauncherFacts& facts,
                                        Occasion occasion) {
  std::vector<std::string> entries;
  const auto both = [&entries](std::string_view name, const std::string& value) {
    entries.push_back(fmt::format("KOLO_{}={}", name, value));
    entries.push_back(fmt::format("BALSAM_{}={}", name, value));
  };
  std::vector<std::int64_t> parents;
  for (const JobId parent : job.parents) parents.push_back(static_cast<std::int64_t>(parent));
  both("JOB_ID", std::to_string(static_cast<std::int64_t>(job.id)));
  both("PARENT_IDS", fmt::format("[{}]", fmt::join(parents, ",")));
  both("LAUNCHER_NODES", std::to_string(facts.nodes));
  both("JOB_MODE", std::string(to_string(facts.mode)));
  entries.push_back("KOLO_DB=" + facts.database);
  entries.push_back("BALSAM_DB_PATH=" + facts.database);
  if (occasion == Occasion::error) both("JOB_ERROR", "TRUE");
  if (occasion == Occasion::timeout) both("JOB_TIMEOUT", "TRUE");
  if (job.threads_per_rank > 1)
    entries.push_back(fmt::format("OMP_NUM_THREADS={}", job.threads_per_rank));
  // The user's own come last and win.
  entries.insert(entries.end(), job.environ.begin(), job.environ.end());
  return entries;
}

}  // namespace

exec::Task task_in(const std::string& directory, const std::string& log,
                   const LauncherFacts& facts) {
  exec::Task task;
  task.directory = directory;
  task.streams.out = task.streams.err = task.directory / log;
  task.grace = {.end = facts.grace, .owner_lost = facts.grace};
  return task;
}

bool needs_runner(const Job& job) { return job.num_nodes > 1 || job.ranks_per_node > 1; }

exec::Task run_task(const Job& job, const Application& application, const std::string& directory,
                    const std::vector<Place>& places, const std::vector<std::string>& hosts,
                    const LauncherFacts& facts) {
  exec::Task task = task_in(directory, job.name + ".out", facts);
  task.environment = environment_of(job, facts, Occasion::normal);
  std::vector<std::string> program = split_words(application.executable, "executable");
  for (auto& word : split_words(job.args, "args")) program.push_back(std::move(word));
  if (!places.empty() && !places[0].gpus.empty())
    task.environment.push_back(
        fmt::format("CUDA_VISIBLE_DEVICES={}", fmt::join(places[0].gpus, ",")));
  if (needs_runner(job)) {
    std::vector<std::string> variables;
    for (const auto& entry : task.environment)
      variables.push_back(entry.substr(0, entry.find('=')));
    program =
        launch::runner_command(facts.runner, {.hosts = hosts,
                                              .ranks_per_node = job.ranks_per_node,
                                              .threads = job.threads_per_rank,
                                              .threads_per_core = job.threads_per_core,
                                              .flags = split_words(job.mpi_flags, "mpi_flags"),
                                              .variables = std::move(variables),
                                              .program = std::move(program)});
  } else if (job.cpu_affinity != "none" && !places.empty()) {
    task.cpus = places[0].cores;
  }
  if (!application.envscript.empty()) {
    // The script and the words are arguments: bash interprets none of them but the script itself.
    std::vector<std::string> wrapped = {"bash", "-c", R"(. "$0" || exit; exec "$@")",
                                        application.envscript};
    wrapped.insert(wrapped.end(), program.begin(), program.end());
    program = std::move(wrapped);
  }
  task.argv = std::move(program);
  return task;
}

exec::Task hook_task(const Job& job, const std::string& command, const std::string& log,
                     const std::string& directory, Occasion occasion, const LauncherFacts& facts) {
  exec::Task task = task_in(directory, log, facts);
  task.environment = environment_of(job, facts, occasion);
  task.argv = split_words(command, "the script");
  return task;
}

}  // namespace kolo::jobs

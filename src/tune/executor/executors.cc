#include "tune/executor/executors.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/registry.h"
#include "base/words.h"
#include "tune/executor/jobs_executor.h"
#include "tune/executor/process_executor.h"

namespace kolo::tune {
namespace {

struct MakeExecutor {
  std::unique_ptr<TrialExecutor> (*make)(ExecutorSetup);
  std::string_view aliases;
};

std::unique_ptr<TrialExecutor> make_threads(ExecutorSetup setup) {
  return make_thread_executor(setup.place.inbox, std::move(*setup.trainable), setup.policy);
}

std::unique_ptr<TrialExecutor> make_processes(ExecutorSetup setup) {
  return make_process_executor(std::move(setup), /*is_ring=*/false);
}

std::unique_ptr<TrialExecutor> make_ranks(ExecutorSetup setup) {
  return make_process_executor(std::move(setup), /*is_ring=*/true);
}

constexpr Entry<MakeExecutor> kExecutors[] = {
    {"thread",
     "a thread of the study each: cheapest; a crash takes the study down",
     {make_threads, "threadPool serial"}},
    {"process",
     "a process each: a crash is the trial's own",
     {make_processes, "processPool subprocess loky ray"}},
    {"ranks", "several ranks each, as `kolo run` starts them", {make_ranks, "rayhorovod mpicomm"}},
    {"jobs",
     "a job each, in the database of KOLO_DB, run by its launchers",
     {make_jobs_executor, "balsam"}},
};
constexpr Registry<MakeExecutor> kExecutorTable{"executor", kExecutors};

const Entry<MakeExecutor>& entry_of(std::string_view name) {
  for (const auto& entry : kExecutorTable.entries()) {
    const auto aliases = split_words(entry.make.aliases, "aliases");
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return entry;
  }
  return kExecutorTable.at(name);
}

}  // namespace

std::vector<ExecutorInfo> executors() {
  std::vector<ExecutorInfo> infos;
  for (const auto& entry : kExecutorTable.entries())
    infos.push_back({entry.name, entry.make.aliases, entry.summary});
  return infos;
}

std::string_view canonical_executor(std::string_view name) { return entry_of(name).name; }

void check_executor(std::string_view name, const ExecutorSetup& setup) {
  const auto executor = canonical_executor(name);
  const auto& shape = setup.shape;
  if (executor == "thread" && !setup.trainable)
    throw_error(ErrorCode::invalid_argument,
                "the executor '{}' calls functions of this process; a program needs process, ranks "
                "or jobs",
                name);
  if (executor != "thread" && !setup.command)
    throw_error(ErrorCode::invalid_argument, "the executor '{}' has no program to run", name);
  if (shape.nodes * shape.ranks_per_node > 1 && executor != "ranks" && executor != "jobs")
    throw_error(ErrorCode::invalid_argument,
                "trials of {} ranks need the executor ranks or jobs, not {}",
                shape.nodes * shape.ranks_per_node, name);
  if (executor == "ranks" && shape.nodes > 1 && static_cast<int>(shape.hosts.size()) < shape.nodes)
    throw_error(ErrorCode::invalid_argument,
                "trials of {} nodes with the executor '{}' need as many hosts, but {} are named; "
                "inside an allocation use the executor jobs",
                shape.nodes, name, shape.hosts.size());
  if (!shape.hosts.empty() && executor != "ranks" && executor != "process")
    throw_error(ErrorCode::invalid_argument,
                "the executor '{}' takes no hosts; process and ranks do", name);
  if (shape.most_ranks > 0 && executor != "ranks")
    throw_error(ErrorCode::invalid_argument,
                "trials whose number of ranks changes need the executor ranks, not {}", name);
  if (shape.most_ranks > 0 && !shape.cluster.empty())
    throw_error(ErrorCode::invalid_argument,
                "trials on a cluster reserve a fixed number of ranks; use hosts instead of a "
                "cluster, or one number for np");
  if (shape.most_ranks > 0 && shape.gpus > 0)
    throw_error(ErrorCode::invalid_argument,
                "GPUs are reserved for a fixed number of ranks; use one number for np");
  if (executor == "jobs" && !setup.jobs) static_cast<void>(find_jobs_place(setup.workflow));
}

std::unique_ptr<TrialExecutor> make_executor(std::string_view name, ExecutorSetup setup) {
  check_executor(name, setup);
  const auto inbox = setup.place.inbox;
  const auto cache = setup.cache;
  auto executor = entry_of(name).make.make(std::move(setup));
  return cache ? make_caching_executor(inbox, std::move(executor), cache) : std::move(executor);
}

}  // namespace kolo::tune

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/log.h"
#include "base/plural.h"
#include "kolo/tune.h"
#include "tune/executor/executors.h"
#include "tune/executor/self_executor.h"
#include "tune/output/progress.h"
#include "tune/study/cluster_study.h"
#include "tune/study/resource_pool.h"
#include "tune/study/study.h"
#include "tune/study/study_reader.h"

namespace kolo::tune {
namespace {

Resources resources_of_trial(const Options& options, const std::optional<Ranks>& ranks) {
  Resources wanted = options.resources_per_trial;
  if (!ranks) return resources_for(std::max(1, wanted.ranks.least), wanted);
  if (wanted.ranks.most > 0)
    throw_error(ErrorCode::invalid_argument,
                "a DistributedTrainable has a fixed number of ranks; give the trainable itself "
                "where resources_per_trial has a range of them");
  if (ranks->num_hosts < 1 || ranks->num_slots < 1)
    throw_error(ErrorCode::invalid_argument,
                "a trial needs at least one host and one slot, not {} hosts of {} slots",
                ranks->num_hosts, ranks->num_slots);
  // The slots of this machine; other hosts give their own.
  wanted.cpu = ranks->cpus_per_slot * ranks->num_slots;
  wanted.gpu = ranks->use_gpu ? ranks->num_slots : 0;
  return wanted;
}

/// Of a trial on a cluster.
TrialShape shape_of(const Resources& per_trial, const std::optional<Ranks>& ranks) {
  TrialShape shape;
  if (ranks) {
    shape.nodes = ranks->num_hosts;
    shape.ranks_per_node = ranks->num_slots;
  }
  shape.threads_per_rank =
      std::max(1, static_cast<int>(std::ceil(ranks ? ranks->cpus_per_slot : per_trial.cpu)));
  shape.gpus = per_trial.gpu;
  return shape;
}

/// Options::executor, with `automatic` resolved.
Executor executor_for(const Options& options, const Runnable& trainable) {
  const bool distributed =
      trainable.ranks().has_value() || options.resources_per_trial.ranks.most > 0;
  const bool on_cluster = !options.cluster.empty();
  const auto executor = options.executor != Executor::automatic ? options.executor
                        : distributed                           ? Executor::ranks
                        : on_cluster                            ? Executor::process
                                                                : Executor::thread;
  if (on_cluster && (executor == Executor::thread || executor == Executor::jobs))
    throw_error(ErrorCode::invalid_argument,
                "trials on a cluster are processes or ranks; leave Options::executor out");
  if (executor == Executor::ranks && !distributed)
    throw_error(ErrorCode::invalid_argument,
                "the executor 'ranks' needs a DistributedTrainable, which says how many ranks a "
                "trial has, or a range of ranks in resources_per_trial");
  if (executor != Executor::ranks && executor != Executor::jobs && distributed)
    throw_error(ErrorCode::invalid_argument,
                "a DistributedTrainable needs the executor 'ranks' or 'jobs'");
  if (options.log_to_file && executor == Executor::thread)
    log::warning(
        "log_to_file has no effect: trials that are threads share the streams of this program. "
        "With Executor::process each trial has its own files");
  return executor;
}

}  // namespace

Analysis run(Runnable trainable, Options options) {
  const SelfCall call;
  if (const auto past = call.past_study()) {
    auto database = store::open_database(past->first);
    store::StudyStore store(*database);
    return read_study(store, past->second);
  }
  const Executor executor = executor_for(options, trainable);
  const ClassPolicy policy{options.checkpoint_freq, options.checkpoint_at_end};
  run_if_trial(trainable, policy);

  StudySetup setup;
  setup.spec.trainable = trainable.name();
  const Resources per_trial = resources_of_trial(options, trainable.ranks());
  check_amounts(per_trial, "a trial");
  if (options.total_resources) check_amounts(*options.total_resources, "a study");
  TrialShape shape;
  shape.gpus = per_trial.gpu;
  if (!options.cluster.empty()) {
    shape = shape_of(per_trial, trainable.ranks());
    use_cluster(options, per_trial, shape);
  }
  setup.options = options;
  setup.per_trial = per_trial;
  setup.makes_directories = executor != Executor::thread || !options.loggers.empty();
  setup.observers = default_observers(options);
  setup.make_executor = [&](const ExecutorPlace& place) -> std::unique_ptr<TrialExecutor> {
    call.remember(storage_url(options), place.study);
    ExecutorSetup own;
    own.place = place;
    own.trainable = trainable;
    own.policy = policy;
    own.time_limit = options.trial_time_limit;
    own.shape = shape;
    if (const auto [least, most] = per_trial.ranks; most > 0) {
      own.shape.ranks_per_node = least;
      own.shape.most_ranks = own.shape.virtual_ranks = most;
      own.shape.threads_per_rank =
          std::max(1, static_cast<int>(std::ceil(options.resources_per_trial.cpu)));
    }
    if (executor == Executor::thread) return make_executor("thread", std::move(own));
    return make_self_executor(executor == Executor::jobs, std::move(own), call);
  };
  Study study(std::move(setup));
  study.run();
  Analysis analysis = study.analysis();
  if (options.raise_on_failed_trial)
    if (const auto failed = analysis.errors(); !failed.empty())
      throw_error(ErrorCode::trial_failed, "study {}: {} of {} failed; the first, {}: {}",
                  study.name(), failed.size(),
                  counted(static_cast<std::int64_t>(analysis.trials().size()), "trial"),
                  failed.front()->id, failed.front()->error);
  return analysis;
}

}  // namespace kolo::tune

// How a study is run. The names are Ray Tune's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/search/sampler.h"
#include "kolo/search/scheduler.h"
#include "kolo/search/space.h"
#include "kolo/search/stopper.h"
#include "kolo/tune/callback.h"

namespace kolo::tune {

// The words of a search space.
using search::choice;
using search::grid_search;
using search::lograndint;
using search::loguniform;
using search::qlograndint;
using search::qloguniform;
using search::qrandint;
using search::qrandn;
using search::quniform;
using search::randint;
using search::randn;
using search::sample_from;
using search::Spec;
using search::uniform;

/// A configuration whose result is known from elsewhere.
struct KnownResult {
  Value config;
  std::vector<double> values{};  ///< one per objective; empty = it failed
};

/// Which sampler, by its name in `kolo list samplers`, with its settings.
struct SearchAlg {
  /// "" = every grid_search combination num_samples times, the rest drawn at random.
  std::string name{};
  std::map<std::string, Value> settings{};
  /// Partial configurations to try first.
  std::vector<Value> points_to_evaluate{};
  /// At most so many trials at once; 0 = as many as there is room for.
  std::int64_t max_concurrent = 0;
  /// Told to the sampler before the first trial. Configurations that the space does not allow are
  /// an error.
  std::vector<KnownResult> known{};
  /// A sampler of one's own instead of one from the table; `name` then only names it.
  std::function<std::unique_ptr<search::Sampler>(std::shared_ptr<const search::Space>,
                                                 search::SamplerOptions)>
      make{};
};

/// Tune's names for searches, as kolo has them.
SearchAlg BayesOptSearch(std::map<std::string, Value> settings = {});
SearchAlg OptunaSearch(std::map<std::string, Value> settings = {});
SearchAlg HyperOptSearch(std::map<std::string, Value> settings = {});
SearchAlg TuneBOHB(std::map<std::string, Value> settings = {});
SearchAlg ConcurrencyLimiter(SearchAlg search_alg, std::int64_t max_concurrent);
SearchAlg Repeater(SearchAlg search_alg, std::int64_t repeat);

/// Which scheduler, by its name in `kolo list schedulers`, with its settings.
struct Scheduling {
  std::string name = "fifo";
  std::map<std::string, Value> settings{};
  /// The metric that counts the time the scheduler thinks in.
  std::string time_attr = "training_iteration";
  /// What population based training may change (Tune's hyperparam_mutations); unset = all of
  /// the space.
  std::optional<Spec> mutations{};
  std::function<Value(Value config)> explore{};
};

Scheduling ASHAScheduler(std::map<std::string, Value> settings = {});
Scheduling HyperBandScheduler(std::map<std::string, Value> settings = {});
Scheduling HyperBandForBOHB(std::map<std::string, Value> settings = {});
Scheduling MedianStoppingRule(std::map<std::string, Value> settings = {});
Scheduling PopulationBasedTraining(Spec hyperparam_mutations,
                                   std::map<std::string, Value> settings = {});
/// One trial that repeats what led to a trial of a population: `policy_file` is the study's
/// pbt_policy_<trial>.txt. Without a space the trial begins as that one did.
Scheduling PopulationBasedTrainingReplay(std::string policy_file);
Scheduling PB2(Spec hyperparam_bounds, std::map<std::string, Value> settings = {});

struct Resources {
  double cpu = 1;
  double gpu = 0;
  std::map<std::string, double> custom{};
};

enum class Executor {
  automatic,  ///< ranks for DistributedTrainable, else thread
  thread,     ///< a thread of this process: cheapest; a crash takes the study down
  process,    ///< this program again, for each trial: a crash or leak is the trial's own
  ranks,      ///< several of them, in a ring
};

enum class Resume {
  no,         ///< a study of this name is an error
  automatic,  ///< goes on with it if there is one
  yes,        ///< there must be one
  errored,    ///< as yes, and trials that failed are tried again
};

struct Objective {
  std::string metric;
  search::Direction direction = search::Direction::minimize;
};

struct Options {
  std::string name{};  ///< "" = the trainable's with the date
  std::string metric{};
  std::string mode{};  ///< "min" or "max"
  /// Instead of metric and mode, where there are several.
  std::vector<Objective> objectives{};
  /// The search space …
  Spec config = Spec(Spec::Dict{});
  /// … or one with conditions.
  std::shared_ptr<const search::Space> space{};
  std::int64_t num_samples = 1;  ///< -1 = without end
  SearchAlg search_alg{};
  Scheduling scheduler{};
  std::uint64_t seed = 0;

  std::map<std::string, double> stop{};  ///< a trial, when any metric is at its limit
  std::function<std::unique_ptr<search::Stopper>()> stopper{};
  std::optional<std::chrono::duration<double>> time_budget{};
  /// Of one run of a trial; beyond it the trial fails with "F_timeout" and is ended.
  std::optional<std::chrono::duration<double>> trial_time_limit{};

  Executor executor = Executor::automatic;
  Resources resources_per_trial{};
  /// What there is; unset = the processors and CUDA devices of this machine.
  std::optional<Resources> total_resources{};
  std::int64_t max_concurrent_trials = 0;  ///< 0 = what the resources allow

  std::int64_t max_failures = 0;  ///< restarts of a trial from its checkpoint; -1 = without end
  bool fail_fast = false;         ///< the first trial that fails ends the study
  bool raise_on_failed_trial = true;

  std::int64_t keep_checkpoints_num = -1;  ///< -1 = all
  /// Which are kept: "" = the newest, "accuracy" = the greatest, "min-loss" = the smallest.
  std::string checkpoint_score_attr{};
  std::int64_t checkpoint_freq = 0;  ///< of classes: every so many steps; 0 = when needed
  bool checkpoint_at_end = false;    ///< of classes

  /// A checkpoint from which every trial begins, of another study say; "" = from nothing.
  std::string restore{};

  Resume resume = Resume::no;
  std::string local_dir{};  ///< "" = $KOLO_RESULTS, else ~/kolo_results
  /// Database: a file or a URL; "" = $KOLO_STORAGE, else kolo.db in local_dir.
  std::string storage{};
  /// "json" (result.json), "csv" (progress.csv), "tensorboard".
  std::vector<std::string> loggers{"json", "csv", "tensorboard"};
  bool log_to_file = false;  ///< of thread trials nothing can be captured; processes always do
  std::function<std::string(std::int64_t number, const Config& config)> trial_dirname_creator{};
  std::vector<std::shared_ptr<StudyCallback>> callbacks{};
  /// 0 silent, 1 the state of the study, 2 and results.
  int verbose = 1;
  /// How long a trial that shall end may take before it is killed.
  std::chrono::duration<double> grace = std::chrono::seconds(5);
  /// How long the study waits for a database that is gone or full before it ends.
  std::chrono::duration<double> storage_patience = std::chrono::minutes(10);
};

}  // namespace kolo::tune

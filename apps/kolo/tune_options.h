// What `kolo tune` and `kolo resume` can be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/option_set.h"

namespace kolo::app {

/// What is printed while a study runs.
struct WatchOptions {
  bool json = false, quiet = false, dashboard = false;
  void declare(cli::OptionSet& set);
};

struct TuneOptions {
  std::string file;  ///< with a description of the study
  std::vector<std::string> program;
  std::string space;
  std::string metric, mode, search, scheduler, executor, hosts, cluster;
  std::optional<std::int64_t> num_samples, seed;
  std::vector<std::string> stop, resources;
  std::optional<double> time_budget, trial_time_limit;
  std::string np, allocation;
  std::optional<int> virtual_ranks;
  bool reuse_workers = false;
  std::optional<double> cpus, gpus, total_cpus, total_gpus;
  std::optional<std::int64_t> max_concurrent, max_failures, give_up_after, keep_checkpoints;
  bool fail_fast = false;
  std::string restore, name, local_dir, storage;
  bool resume = false;
  WatchOptions watch;

  void declare(cli::OptionSet& set);
  /// The description in the file, if there is one, and over it what was given.
  [[nodiscard]] Json description(const cli::OptionSet& given) const;
};

struct ResumeOptions {
  std::string study, storage, hosts, cluster;
  std::optional<std::int64_t> num_samples;
  bool errored = false;
  WatchOptions watch;
  void declare(cli::OptionSet& set);
};

}  // namespace kolo::app

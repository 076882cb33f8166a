// Runs one elastic job from its start to its end: the heart of `kolo run --min-np …`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/elastic/host_pool.h"
#include "launch/hosts.h"
#include "launch/supervisor.h"

namespace kolo::launch::elastic {

struct ElasticJob {
  ParallelJob job;          ///< its placements are not used
  std::vector<Host> hosts;  ///< to begin with; they stay if there is no script
  std::string discovery_script;
  int slots_per_host = 1;  ///< of hosts for which the script gives no number
  int start_ranks = 1, least_ranks = 1, most_ranks = 1'000'000;
  std::optional<int> reset_limit;
  std::optional<Cooldown> cooldown;
  std::chrono::milliseconds elastic_timeout{600'000};
};

/// As run_job(), of a job whose ranks come and go.
int run_elastic_job(const ElasticJob& job);

}  // namespace kolo::launch::elastic

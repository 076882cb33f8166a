#include "tune/study/cluster_study.h"

#include <cmath>

#include "base/errors.h"
#include "cluster/members.h"
#include "tune/study/resource_pool.h"

namespace kolo::tune {

exec::Amounts amounts_of_rank(const Resources& trial, int ranks, int threads_per_rank) {
  exec::Amounts each{std::max(1, threads_per_rank), 0, {}};
  const double gpus = trial.gpu / ranks;
  if (std::floor(gpus) != gpus)
    throw_error(ErrorCode::invalid_argument,
                "a trial with {} GPUs and {} ranks cannot run on a cluster, whose GPUs are not "
                "divided",
                trial.gpu, ranks);
  each.gpus = static_cast<int>(gpus);
  for (const auto& [name, amount] : trial.custom) each.named[name] = amount / ranks;
  return each;
}

void use_cluster(Options& options, const Resources& per_trial, TrialShape& shape) {
  shape.cluster = cluster::cluster_name_or_only(options.cluster);
  shape.each_rank =
      amounts_of_rank(per_trial, shape.nodes * shape.ranks_per_node, shape.threads_per_rank);
  shape.hosts = cluster::hosts_of_cluster(shape.cluster, shape.each_rank);
  const int at_once = trials_at_once(shape);
  if (at_once < 1)
    throw_error(ErrorCode::invalid_argument,
                "a trial needs {} for each of {} ranks on {} hosts, which cluster {} does not have",
                exec::describe(shape.each_rank), shape.ranks_per_node, shape.nodes, shape.cluster);
  shape.follows_cluster = !options.total_resources;
  if (shape.follows_cluster) options.total_resources = resources_for(at_once, per_trial);
}

}  // namespace kolo::tune

#include "cluster_run.h"

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/log.h"
#include "base/words.h"
#include "cluster/placing.h"
#include "cluster_argument.h"
#include "jobs_database.h"

namespace kolo::app {

void place_on_cluster(launch::ParallelJob& job, const std::string& cluster, int ranks,
                      std::chrono::milliseconds wait) {
  const auto found = cluster::load_cluster(cluster_named(cluster));
  const std::string program = std::filesystem::path(job.argv.front()).filename();
  auto members = std::make_shared<std::vector<cluster::LinkedMember>>(cluster::link_all(
      found, cluster::owner_name("kolo run " + program), Deadline::after(job.start_timeout)));
  for (const auto& linked : *members)
    if (!linked.answers())
      log::warning("{} of cluster {} is lost: {}", linked.member.host, found.name, linked.error);
  if (ranks == 0) {
    for (const auto& linked : *members)
      if (!linked.holdings.is_draining) ranks += linked.holdings.free.slots;
    ranks = std::max(ranks, 1);
  }
  const auto counts = cluster::reserve_ranks(*members, ranks, {1, 0, {}}, cluster::Spread::packed,
                                             Deadline::after(wait));
  int first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    job.placements.push_back({(*members)[i].member.host, first, counts[i], /*is_local=*/false});
    first += counts[i];
  }
  job.open_link = [members](const launch::Placement& placement) {
    auto& linked = *std::find_if(members->begin(), members->end(), [&](const auto& one) {
      return one.member.host == placement.host;
    });
    return launch::OpenedLink{std::move(linked.link), linked.hello};
  };
}

std::string follow_cluster(launch::ParallelJob& job, const std::string& cluster) {
  const std::string name = cluster_named(cluster);
  (void)cluster::load_cluster(name);  // said now if it does not exist
  const std::string program = std::filesystem::path(job.argv.front()).filename();
  const std::string owner = cluster::owner_name("kolo run " + program);
  job.open_link = [name, owner](const launch::Placement& placement) {
    const auto found = cluster::load_cluster(name);  // the host may stand elsewhere by now
    return launch::OpenedLink{cluster::begin_link(found, found.at(placement.host), owner), {}};
  };
  return shell_line({own_program(), "custodian", "hosts", name, owner});
}

}  // namespace kolo::app

#include "jobs/pilot/nodes.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/errors.h"
#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

/// Shares are sums of 1/n: thirds do not add up to one exactly.
constexpr double kRounding = 1e-3;

struct ModeName {
  JobMode mode;
  std::string_view name;
};
constexpr ModeName kModes[] = {
    {JobMode::mixed, "mixed"}, {JobMode::serial, "serial"}, {JobMode::mpi, "mpi"}};

/// GPUs with room for a need: whole ones for a whole need, parts of one for less.
std::vector<int> free_gpus(const std::vector<double>& shares, double need) {
  std::vector<int> found;
  const auto wanted = static_cast<std::size_t>(std::ceil(need - kRounding));
  const double each = need >= 1 ? 1 : need;
  // The fullest first: parts gather on few.
  std::vector<int> order(shares.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int left, int right) {
    return shares[static_cast<std::size_t>(left)] > shares[static_cast<std::size_t>(right)];
  });
  for (const int gpu : order)
    if (found.size() < wanted && shares[static_cast<std::size_t>(gpu)] + each <= 1 + kRounding)
      found.push_back(gpu);
  if (found.size() < wanted) found.clear();
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

JobMode parse_job_mode(std::string_view name) {
  for (const auto& row : kModes)
    if (row.name == name) return row.mode;
  throw_error(ErrorCode::invalid_argument, "job mode '{}' is unknown; known: mixed, serial, mpi",
              name);
}

std::string_view to_string(JobMode mode) { return kModes[static_cast<std::size_t>(mode)].name; }

Need need_of(const Job& job, JobMode mode) {
  Need need{.nodes = job.num_nodes,
            .cores = cores_per_node(job),
            .gpus = job.gpus_per_rank * job.ranks_per_node,
            .share = 1.0 / job.node_packing_count};
  if (mode == JobMode::mpi) need.share = 1;
  if (job.yields && need.share == 1) need.share = need.gpus = need.cores = 0;
  return need;
}

Nodes::Nodes(std::vector<Node> nodes, JobMode mode) : nodes_(std::move(nodes)) {
  for (const auto& node : nodes_) {
    auto& use = uses_.emplace_back();
    use.core_taken.resize(static_cast<std::size_t>(node.cores));
    use.gpu_share.resize(static_cast<std::size_t>(node.gpus));
  }
  // The master of Balsam's serial mode has a node to itself, unless there is only one.
  if (mode == JobMode::serial && nodes_.size() > 1) uses_[0].without_jobs = true;
}

int Nodes::usable() const {
  return static_cast<int>(
      std::count_if(uses_.begin(), uses_.end(), [](const Use& use) { return !use.without_jobs; }));
}

std::string Nodes::obstacle(const Need& need) const {
  int enough = 0, most_cores = 0, most_gpus = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (uses_[i].without_jobs) continue;
    most_cores = std::max(most_cores, nodes_[i].cores);
    most_gpus = std::max(most_gpus, nodes_[i].gpus);
    if (nodes_[i].cores >= need.cores && nodes_[i].gpus + kRounding >= need.gpus) ++enough;
  }
  if (need.cores > most_cores)
    return fmt::format("it needs {} cores on a node, and nodes have {}", need.cores, most_cores);
  if (need.gpus > most_gpus + kRounding)
    return fmt::format("it needs {} GPUs on a node, and nodes have {}", need.gpus, most_gpus);
  if (enough < need.nodes)
    return fmt::format("it needs {} nodes, and {} could be used", need.nodes, enough);
  return {};
}

bool Nodes::has_room() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!uses_[i].without_jobs && uses_[i].share < 1 - kRounding &&
        uses_[i].cores < nodes_[i].cores)
      return true;
  return false;
}

bool Nodes::fits(const Need& need, std::size_t node) const {
  const Use& use = uses_[node];
  return !use.without_jobs && use.share + need.share <= 1 + kRounding &&
         use.cores + need.cores <= nodes_[node].cores &&
         (need.gpus <= 0 || !free_gpus(use.gpu_share, need.gpus).empty());
}

std::vector<int> Nodes::find(const Need& need, const std::vector<bool>& without) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if ((without.empty() || !without[i]) && fits(need, i)) found.push_back(static_cast<int>(i));
  const auto wanted = static_cast<std::size_t>(need.nodes);
  if (found.size() < wanted) return {};
  // Full nodes fill up first, so that empty ones stay for jobs that need them whole. A job that
  // yields has its node to itself as long as there are others.
  std::stable_sort(found.begin(), found.end(), [this](int left, int right) {
    const Use& one = uses_[static_cast<std::size_t>(left)];
    const Use& other = uses_[static_cast<std::size_t>(right)];
    return std::tuple(one.guests, -one.share) < std::tuple(other.guests, -other.share);
  });
  found.resize(wanted);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Place> Nodes::take(const Need& need, const std::vector<int>& nodes) {
  std::vector<Place> places;
  for (const int number : nodes) {
    Use& use = uses_[static_cast<std::size_t>(number)];
    Place place{number, {}, {}};
    use.share += need.share;
    use.cores += need.cores;
    use.guests += need.yields() ? 1 : 0;
    for (std::size_t core = 0; core < use.core_taken.size() && std::ssize(place.cores) < need.cores;
         ++core)
      if (!use.core_taken[core]) {
        use.core_taken[core] = true;
        place.cores.push_back(static_cast<int>(core));
      }
    if (need.gpus > 0) place.gpus = free_gpus(use.gpu_share, need.gpus);
    for (const int gpu : place.gpus)
      use.gpu_share[static_cast<std::size_t>(gpu)] += need.gpus >= 1 ? 1 : need.gpus;
    places.push_back(std::move(place));
  }
  return places;
}

void Nodes::give_back(const Need& need, const std::vector<Place>& places) {
  for (const auto& place : places) {
    Use& use = uses_[static_cast<std::size_t>(place.node)];
    use.share -= need.share;
    use.cores -= need.cores;
    use.guests -= need.yields() ? 1 : 0;
    if (use.cores == 0) use.share = 0;
    for (const int core : place.cores) use.core_taken[static_cast<std::size_t>(core)] = false;
    for (const int gpu : place.gpus)
      use.gpu_share[static_cast<std::size_t>(gpu)] -= need.gpus >= 1 ? 1 : need.gpus;
  }
}

void Nodes::lose(int node) { uses_[static_cast<std::size_t>(node)].without_jobs = true; }

}  // namespace kolo::jobs

#include "kolo/topology.h"

#include <algorithm>
#include <map>

#include "base/errors.h"

namespace kolo {

Topology::Topology(int rank, std::vector<int> host_of_rank)
    : rank_(rank), host_of_rank_(std::move(host_of_rank)) {
  if (rank_ < 0 || rank_ >= size())
    throw_error(ErrorCode::invalid_argument, "topology: rank {} is not in 0…{}", rank_, size() - 1);

  std::map<int, int> number_of_host;
  std::vector<int> local_rank(size()), ranks_on;
  for (int r = 0; r < size(); ++r) {
    auto [it, is_new] =
        number_of_host.try_emplace(host_of_rank_[r], static_cast<int>(ranks_on.size()));
    if (is_new) ranks_on.push_back(0);
    host_of_rank_[r] = it->second;
    local_rank[r] = ranks_on[it->second]++;
  }
  host_count_ = static_cast<int>(ranks_on.size());
  local_rank_ = local_rank[rank_];
  local_size_ = ranks_on[host_of_rank_[rank_]];
  is_homogeneous_ =
      std::all_of(ranks_on.begin(), ranks_on.end(), [&](int n) { return n == ranks_on.front(); });
  cross_size_ = 0;
  for (int host = 0; host < host_count_; ++host) {
    if (ranks_on[host] <= local_rank_) continue;
    if (host == host_of_rank_[rank_]) cross_rank_ = cross_size_;
    ++cross_size_;
  }
}

std::vector<int> Topology::ranks_on_host(int host) const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (host_of_rank_[r] == host) ranks.push_back(r);
  return ranks;
}

Topology Topology::subset(const std::vector<int>& ranks) const {
  std::vector<int> hosts;
  int me = -1;
  for (int r : ranks) {
    if (r == rank_) me = static_cast<int>(hosts.size());
    hosts.push_back(host_of(r));
  }
  return {me, std::move(hosts)};
}

}  // namespace kolo

// Who the ranks are and which of them share a host.
#pragma once

#include <vector>

namespace kolo {

/// Places of all ranks of a job. Immutable; the same on every rank except for `rank`.
class Topology {
 public:
  /// One rank alone.
  Topology() : Topology(0, {0}) {}

  /// `host_of_rank[r]` is any number that is equal for ranks on one host. Throws invalid_argument.
  Topology(int rank, std::vector<int> host_of_rank);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(host_of_rank_.size()); }

  /// Index of this rank among, and number of, the ranks of this host.
  [[nodiscard]] int local_rank() const noexcept { return local_rank_; }
  [[nodiscard]] int local_size() const noexcept { return local_size_; }

  /// Index of this host among, and number of, the hosts that have a rank with this local rank.
  [[nodiscard]] int cross_rank() const noexcept { return cross_rank_; }
  [[nodiscard]] int cross_size() const noexcept { return cross_size_; }

  /// Every host has the same number of ranks.
  [[nodiscard]] bool is_homogeneous() const noexcept { return is_homogeneous_; }

  /// Hosts are numbered 0… in the order of their first rank.
  [[nodiscard]] int host_count() const noexcept { return host_count_; }
  [[nodiscard]] int host_of(int rank) const { return host_of_rank_.at(rank); }
  [[nodiscard]] const std::vector<int>& host_of_rank() const noexcept { return host_of_rank_; }

  /// The ranks of one host, ascending.
  [[nodiscard]] std::vector<int> ranks_on_host(int host) const;

  /// The topology of a subset: member i of `ranks` becomes rank i. This rank must be a member.
  [[nodiscard]] Topology subset(const std::vector<int>& ranks) const;

 private:
  int rank_;
  std::vector<int> host_of_rank_;
  int local_rank_ = 0, local_size_ = 1, cross_rank_ = 0, cross_size_ = 1, host_count_ = 1;
  bool is_homogeneous_ = true;
};

}  // namespace kolo

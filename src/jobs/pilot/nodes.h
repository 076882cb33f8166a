// The nodes of a launcher, and what of them is in use.
//
// A job takes of each of its nodes: a share (1 / node_packing_count; the shares on a node are 1 at
// most), cores, and GPUs, which may be parts of one. A job of several nodes takes the same of each.
// Cost of placing: the number of nodes times their cores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

/// Which jobs a launcher takes, and how they share nodes.
enum class JobMode {
  mixed,   ///< every job; nodes are shared as jobs permit
  serial,  ///< Balsam's: one node and one rank, packed; the first of several nodes has no jobs
  mpi,     ///< Balsam's: every job, each on whole nodes
};
/// Throws invalid_argument.
JobMode parse_job_mode(std::string_view name);
std::string_view to_string(JobMode mode);

struct Node {
  std::string name;
  int cores = 1;
  int gpus = 0;
  bool answers = true;  ///< otherwise it has no jobs
};

/// What a job takes of each of its nodes.
struct Need {
  int nodes = 1;
  int cores = 1;
  double gpus = 0;
  double share = 1;

  [[nodiscard]] bool yields() const noexcept { return share == 0; }
  bool operator==(const Need&) const = default;
};
/// A job that yields takes nothing, unless it shares its node by its packing count.
Need need_of(const Job& job, JobMode mode);

/// What a job was given on one node.
struct Place {
  int node = 0;
  std::vector<int> cores;
  std::vector<int> gpus;
};

class Nodes {
 public:
  Nodes(std::vector<Node> nodes, JobMode mode);

  [[nodiscard]] const std::vector<Node>& all() const noexcept { return nodes_; }
  /// Those that have jobs, and are not lost.
  [[nodiscard]] int usable() const;
  /// Why the need can never be met here; empty if it can.
  [[nodiscard]] std::string obstacle(const Need& need) const;
  [[nodiscard]] bool has_room() const;

  /// Takes nothing: the nodes that have room now, those without guests and the fullest first; empty
  /// if they do not suffice.
  /// Nodes marked in `without` are left out.
  [[nodiscard]] std::vector<int> find(const Need& need,
                                      const std::vector<bool>& without = {}) const;
  std::vector<Place> take(const Need& need, const std::vector<int>& nodes);
  void give_back(const Need& need, const std::vector<Place>& places);
  void lose(int node);

 private:
  struct Use {
    double share = 0;
    int cores = 0;
    int guests = 0;  // jobs that yield
    std::vector<bool> core_taken;
    std::vector<double> gpu_share;
    bool without_jobs = false;
  };
  [[nodiscard]] bool fits(const Need& need, std::size_t node) const;

  std::vector<Node> nodes_;
  std::vector<Use> uses_;
};

}  // namespace kolo::jobs

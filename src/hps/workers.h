// How many evaluations run at once.
//
// Inside a launcher's allocation the arithmetic is DeepHyper's with Balsam: N nodes, E evaluations
// a node.
//
//   one node       E − 1             the search takes one place
//   serial mode    (N − 1)·E − 1     the first node is the master's, the search takes one place
//   mpi mode       (N − nodes of the search) div nodes of an evaluation
//   mixed mode     what is left of all places after the search's own: kolo's launcher has no master
#pragma once

#include <optional>
#include <string>

namespace kolo::hps {

/// What a launcher tells the jobs it runs, and what a search asks for.
struct Allocation {
  int nodes = 1;
  std::string job_mode = "mixed";  ///< mixed, serial or mpi
  int evals_per_node = 1;
  int search_nodes = 1;    ///< that the search itself takes
  int nodes_per_eval = 1;  ///< more than one: an evaluation has them alone

  /// From KOLO_LAUNCHER_NODES, KOLO_JOB_MODE, KOLO_WORKERS_PER_NODE and KOLO_JOB_NODES, else
  /// Balsam's and DeepHyper's names for them (BALSAM_LAUNCHER_NODES, BALSAM_JOB_MODE,
  /// DEEPHYPER_WORKERS_PER_NODE). None outside an allocation.
  static std::optional<Allocation> from_environment();
};

/// At least 1. Throws invalid_argument for numbers below 1 and unknown modes.
[[nodiscard]] int workers_in(const Allocation& allocation);

/// On one machine: how many evaluations of so many ranks and threads each its processors hold; at
/// least 1.
[[nodiscard]] int workers_here(int processors, int ranks_per_eval, int threads_per_rank);

/// The share of agent `agent` of `agents` in `workers` evaluators: as even as it goes, and all of
/// them are used. Throws invalid_argument when there are fewer workers than agents.
[[nodiscard]] int share_of_agent(int workers, int agent, int agents);

}  // namespace kolo::hps

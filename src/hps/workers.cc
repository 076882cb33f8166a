#include "hps/workers.h"

#include <algorithm>
#include <charconv>

#include "base/env.h"
#include "base/errors.h"

namespace kolo::hps {
namespace {

std::optional<int> number_in(const char* own, const char* theirs) {
  for (const char* name : {own, theirs}) {
    const auto text = environment(name);
    if (!text || text->empty()) continue;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < 1)
      throw_error(ErrorCode::invalid_argument, "{}={}: a whole number above 0 is needed", name,
                  *text);
    return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Allocation> Allocation::from_environment() {
  const auto nodes = number_in("KOLO_LAUNCHER_NODES", "BALSAM_LAUNCHER_NODES");
  if (!nodes) return std::nullopt;
  Allocation allocation;
  allocation.nodes = *nodes;
  for (const char* name : {"KOLO_JOB_MODE", "BALSAM_JOB_MODE"})
    if (const auto mode = environment(name); mode && !mode->empty()) {
      allocation.job_mode = *mode;
      break;
    }
  allocation.evals_per_node =
      number_in("KOLO_WORKERS_PER_NODE", "DEEPHYPER_WORKERS_PER_NODE").value_or(1);
  allocation.search_nodes = number_in("KOLO_JOB_NODES", "BALSAM_JOB_NODES").value_or(1);
  return allocation;
}

int workers_in(const Allocation& allocation) {
  const auto& [nodes, mode, per_node, search_nodes, nodes_per_eval] = allocation;
  if (nodes < 1 || per_node < 1 || search_nodes < 1 || nodes_per_eval < 1)
    throw_error(ErrorCode::invalid_argument,
                "an allocation of {} nodes, {} evaluations a node, {} nodes for the search and {} "
                "for an evaluation: all must be above 0",
                nodes, per_node, search_nodes, nodes_per_eval);
  int workers = 0;
  if (mode == "mpi") {
    workers = (nodes - search_nodes) / nodes_per_eval;
  } else if (mode == "serial") {
    workers = nodes == 1 ? per_node - 1 : (nodes - 1) * per_node - 1;
  } else if (mode == "mixed") {
    workers = nodes_per_eval > 1 ? (nodes - search_nodes) / nodes_per_eval : nodes * per_node - 1;
  } else {
    throw_error(ErrorCode::invalid_argument, "job mode '{}' is unknown; known: mixed, serial, mpi",
                mode);
  }
  return std::max(workers, 1);
}

int workers_here(int processors, int ranks_per_eval, int threads_per_rank) {
  if (ranks_per_eval < 1 || threads_per_rank < 1)
    throw_error(ErrorCode::invalid_argument,
                "{} ranks of {} threads an evaluation: both must be above 0", ranks_per_eval,
                threads_per_rank);
  return std::max(processors / (ranks_per_eval * threads_per_rank), 1);
}

int share_of_agent(int workers, int agent, int agents) {
  if (agents < 1 || agent < 0 || agent >= agents)
    throw_error(ErrorCode::invalid_argument, "agent {} of {}", agent, agents);
  if (workers < agents)
    throw_error(ErrorCode::invalid_argument,
                "{} workers cannot be shared among {} agents; each needs one", workers, agents);
  return workers / agents + (agent < workers % agents ? 1 : 0);
}

}  // namespace kolo::hps

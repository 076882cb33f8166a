// The order of a graph's nodes, and what can be wrong with a graph whatever the architecture.
//
// Kahn, "Topological sorting of large networks", 1962, taking the node that was added first where
// several are free; O((V + E) log V). Connect operations count as connections, chosen or not, so
// that the order does not depend on the architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kolo/nas/search_space.h"

namespace kolo::nas {

struct GraphOrder {
  std::vector<std::size_t> nodes;      ///< every node after those it depends on
  std::vector<std::size_t> variables;  ///< the variable nodes among them
  /// Of each node: the place in an architecture that decides its operation; -1: nothing to decide.
  std::vector<std::int64_t> decided_by;
  std::vector<std::size_t> outputs;
};

inline std::size_t index_of(NodeId id) { return static_cast<std::size_t>(id); }
inline NodeId id_of(std::size_t index) { return static_cast<NodeId>(index); }

/// The node whose operations count: that of a mirror is its target's.
const Node& with_operations(const std::vector<Node>& nodes, const Node& node);

/// Sources of a Connect operation; none for others.
std::vector<NodeId> connect_sources(const Operation& operation);

/// All nodes that may come into each node, in the order of their first mention.
std::vector<std::vector<std::size_t>> possible_sources(const std::vector<Node>& nodes);

/// Nodes that lead nowhere, inputs apart, in the order in which they were added.
std::vector<std::size_t> sinks_of(const std::vector<Node>& nodes);

/// Throws invalid_argument, as KSearchSpace::check says. `outputs` empty: all sinks.
GraphOrder order_graph(const std::vector<Node>& nodes, const std::vector<NodeId>& outputs,
                       std::size_t wanted_outputs);

}  // namespace kolo::nas

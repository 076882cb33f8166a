// The order is Kahn's, with a priority queue so that of several nodes that could be next the one
// added first is taken. Two searches over the graph then find nodes that no input reaches and nodes
// that lead to no output. A constant or a Zero counts as an input, because it needs nothing before
// it.
#include "nas/graph/graph_order.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "base/errors.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

using Edges = std::vector<std::vector<std::size_t>>;

Edges reversed(const Edges& sources) {
  Edges followers(sources.size());
  for (std::size_t node = 0; node < sources.size(); ++node)
    for (const std::size_t source : sources[node]) followers[source].push_back(node);
  return followers;
}

std::string names_of(const std::vector<Node>& nodes, const std::vector<std::size_t>& which,
                     std::string_view between) {
  std::vector<std::string> names;
  for (const std::size_t node : which) names.push_back(nodes[node].name);
  return fmt::format("{}", fmt::join(names, between));
}

/// `open` nodes each have an open source; following these back must come to a node twice.
[[noreturn]] void throw_cycle(const std::vector<Node>& nodes, const Edges& sources,
                              const std::vector<bool>& placed) {
  std::size_t node = 0;
  while (placed[node]) ++node;
  std::vector<std::size_t> path;
  while (std::find(path.begin(), path.end(), node) == path.end()) {
    path.push_back(node);
    node = *std::find_if(sources[node].begin(), sources[node].end(),
                         [&](std::size_t source) { return !placed[source]; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), node));
  path.push_back(node);
  std::reverse(path.begin(), path.end());
  throw_error(ErrorCode::invalid_argument,
              "architecture space: the graph has a cycle: {}; remove one of these connections",
              names_of(nodes, path, " -> "));
}

std::vector<std::size_t> sort(const std::vector<Node>& nodes, const Edges& sources) {
  const Edges followers = reversed(sources);
  std::vector<std::size_t> missing(nodes.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    missing[node] = sources[node].size();
    if (missing[node] == 0) free.push(node);
  }
  std::vector<std::size_t> order;
  std::vector<bool> placed(nodes.size(), false);
  while (!free.empty()) {
    const std::size_t node = free.top();
    free.pop();
    order.push_back(node);
    placed[node] = true;
    for (const std::size_t follower : followers[node])
      if (--missing[follower] == 0) free.push(follower);
  }
  if (order.size() < nodes.size()) throw_cycle(nodes, sources, placed);
  return order;
}

/// Needs nothing to come in: a constant, or nothing at all.
bool stands_alone(const Operation& operation) {
  const OperationKind* kind = &kind_of(operation);
  return kind == &kinds::zero || kind->arity == Arity::none;
}

std::vector<bool> reached(std::vector<std::size_t> from, const Edges& edges) {
  std::vector<bool> seen(edges.size(), false);
  while (!from.empty()) {
    const std::size_t node = from.back();
    from.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    from.insert(from.end(), edges[node].begin(), edges[node].end());
  }
  return seen;
}

void check_reach(const std::vector<Node>& nodes, const Edges& sources,
                 const std::vector<std::size_t>& outputs) {
  std::vector<std::size_t> beginnings;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& operations = with_operations(nodes, nodes[i]).operations;
    if (nodes[i].kind == NodeKind::input ||
        std::any_of(operations.begin(), operations.end(), stands_alone))
      beginnings.push_back(i);
  }
  const auto from_inputs = reached(beginnings, reversed(sources));
  const auto to_outputs = reached(outputs, sources);
  std::vector<std::size_t> unreached, useless;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!from_inputs[i]) unreached.push_back(i);
    if (!to_outputs[i]) useless.push_back(i);
  }
  if (!unreached.empty())
    throw_error(ErrorCode::invalid_argument,
                "architecture space: no input reaches {}; connect something to {}",
                names_of(nodes, unreached, ", "), unreached.size() == 1 ? "it" : "them");
  if (!useless.empty())
    throw_error(ErrorCode::invalid_argument,
                "architecture space: {} {} to no output; connect {} to something",
                names_of(nodes, useless, ", "), useless.size() == 1 ? "leads" : "lead",
                useless.size() == 1 ? "it" : "them");
}

}  // namespace

const Node& with_operations(const std::vector<Node>& nodes, const Node& node) {
  return node.kind == NodeKind::mirror ? nodes[index_of(node.target)] : node;
}

std::vector<NodeId> connect_sources(const Operation& operation) {
  std::vector<NodeId> sources;
  if (&kind_of(operation) != &kinds::connect) return sources;
  for (const std::int64_t number : Arguments(operation.arguments).shape("sources"))
    sources.push_back(static_cast<NodeId>(number));
  return sources;
}

std::vector<std::vector<std::size_t>> possible_sources(const std::vector<Node>& nodes) {
  Edges all(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto mention = [&](NodeId id) {
      if (std::find(all[i].begin(), all[i].end(), index_of(id)) == all[i].end())
        all[i].push_back(index_of(id));
    };
    for (const NodeId source : nodes[i].sources) mention(source);
    for (const Operation& operation : with_operations(nodes, nodes[i]).operations)
      for (const NodeId source : connect_sources(operation)) mention(source);
  }
  return all;
}

std::vector<std::size_t> sinks_of(const std::vector<Node>& nodes) {
  const Edges followers = reversed(possible_sources(nodes));
  std::vector<std::size_t> sinks;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind != NodeKind::input && followers[i].empty()) sinks.push_back(i);
  return sinks;
}

GraphOrder order_graph(const std::vector<Node>& nodes, const std::vector<NodeId>& outputs,
                       std::size_t wanted_outputs) {
  const Edges sources = possible_sources(nodes);
  GraphOrder order;
  order.nodes = sort(nodes, sources);
  for (const NodeId output : outputs) order.outputs.push_back(index_of(output));
  if (outputs.empty()) order.outputs = sinks_of(nodes);
  if (order.outputs.size() != wanted_outputs)
    throw_error(ErrorCode::invalid_argument,
                "architecture space: {} output shape{} but {} output node{} ({}); set_outputs says "
                "which they are, add_outputs merges those that lead nowhere",
                wanted_outputs, wanted_outputs == 1 ? "" : "s", order.outputs.size(),
                order.outputs.size() == 1 ? "" : "s",
                order.outputs.empty() ? "none" : names_of(nodes, order.outputs, ", "));
  check_reach(nodes, sources, order.outputs);

  order.decided_by.assign(nodes.size(), -1);
  for (const std::size_t node : order.nodes)
    if (nodes[node].kind == NodeKind::variable) {
      order.decided_by[node] = static_cast<std::int64_t>(order.variables.size());
      order.variables.push_back(node);
    }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == NodeKind::mime)
      order.decided_by[i] = order.decided_by[index_of(nodes[i].target)];
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)  // whose target may be a mime
    if (nodes[i].kind == NodeKind::mirror)
      order.decided_by[i] = order.decided_by[index_of(nodes[i].target)];
  return order;
}

}  // namespace kolo::nas

// Nodes only ever refer to nodes that were added before them, except through connect(). The order
// of the graph is computed when it is first needed and forgotten when the graph changes; cycles and
// nodes without input or output are found then.
#include "kolo/nas/search_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/mutex.h"
#include "base/registry.h"
#include "nas/graph/blueprint.h"
#include "nas/graph/graph_order.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

void check_shapes(const std::vector<Shape>& shapes, std::string_view what) {
  if (shapes.empty())
    throw_error(ErrorCode::invalid_argument, "architecture space: no {} shape", what);
  for (const Shape& shape : shapes)
    if (shape.empty() ||
        std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 1; }))
      throw_error(ErrorCode::invalid_argument,
                  "architecture space: {} shape {} must have at least one dimension, each of at "
                  "least 1; leave out the batch",
                  what, to_string(shape));
}

std::string_view short_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::input: return "input";
    case NodeKind::variable: return "variable";
    case NodeKind::constant: return "constant";
    case NodeKind::mirror: return "mirror";
    case NodeKind::mime: return "mime";
  }
  return "node";
}

}  // namespace

std::string_view to_string(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::input: return "InputNode";
    case NodeKind::variable: return "VariableNode";
    case NodeKind::constant: return "ConstantNode";
    case NodeKind::mirror: return "MirrorNode";
    case NodeKind::mime: return "MimeNode";
  }
  return "Node";
}

/// The order of the graph, which several threads may be the first to need.
class KSearchSpace::KeptOrder {
 public:
  template <typename Make>
  std::shared_ptr<const GraphOrder> get(Make make) {
    MutexLock lock(mutex_);
    if (!order_) order_ = std::make_shared<GraphOrder>(make());
    return order_;
  }
  void forget() {
    MutexLock lock(mutex_);
    order_.reset();
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const GraphOrder> order_ KOLO_GUARDED_BY(mutex_);
};

KSearchSpace::KSearchSpace(std::vector<Shape> input_shapes, std::vector<Shape> output_shapes)
    : inputs_(std::move(input_shapes)),
      outputs_(std::move(output_shapes)),
      order_(std::make_unique<KeptOrder>()) {
  check_shapes(inputs_, "input");
  check_shapes(outputs_, "output");
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    add({.kind = NodeKind::input, .name = fmt::format("input_{}", i)});
}

KSearchSpace::~KSearchSpace() = default;

NodeId KSearchSpace::add(Node node) {
  if (node.name.empty()) node.name = fmt::format("{}_{}", short_name(node.kind), nodes_.size());
  if (node.name.find('.') != std::string::npos)
    throw_error(ErrorCode::invalid_argument,
                "node '{}': a dot separates the names of modules and parameters; use another sign",
                node.name);
  for (const Node& other : nodes_)
    if (other.name == node.name)
      throw_error(ErrorCode::already_exists, "node '{}' was already added; names must differ",
                  node.name);
  for (const Operation& operation : node.operations) {
    try {
      operation.check();
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("node '{}': {}", node.name, error.message()));
    }
    for (const NodeId source : connect_sources(operation))
      if (index_of(source) >= nodes_.size())
        throw_error(ErrorCode::invalid_argument,
                    "node '{}': Connect: there is no node {}; add the sources first", node.name,
                    static_cast<std::int64_t>(source));
  }
  nodes_.push_back(std::move(node));
  order_->forget();
  return id_of(nodes_.size() - 1);
}

NodeId KSearchSpace::add_variable(std::string name, std::vector<Operation> operations) {
  if (operations.empty())
    throw_error(ErrorCode::invalid_argument, "node '{}': a VariableNode needs an operation", name);
  return add(
      {.kind = NodeKind::variable, .name = std::move(name), .operations = std::move(operations)});
}

NodeId KSearchSpace::add_constant(std::string name, Operation operation) {
  return add(
      {.kind = NodeKind::constant, .name = std::move(name), .operations = {std::move(operation)}});
}

NodeId KSearchSpace::add_mirror(std::string name, NodeId target) {
  const Node& mirrored = node(target);
  if (mirrored.operations.empty())
    throw_error(ErrorCode::invalid_argument,
                "node '{}': a MirrorNode needs a node with operations, '{}' is an {}", name,
                mirrored.name, to_string(mirrored.kind));
  return add({.kind = NodeKind::mirror, .name = std::move(name), .target = target});
}

NodeId KSearchSpace::add_mime(std::string name, NodeId target, std::vector<Operation> operations) {
  const Node& mimed = node(target);
  if (mimed.kind != NodeKind::variable)
    throw_error(ErrorCode::invalid_argument,
                "node '{}': a MimeNode needs a VariableNode whose choice it takes, '{}' is a {}",
                name, mimed.name, to_string(mimed.kind));
  if (operations.empty()) operations = mimed.operations;
  if (operations.size() != mimed.operations.size())
    throw_error(ErrorCode::invalid_argument,
                "node '{}': it has {} operations, but '{}', whose choice it takes, has {}", name,
                operations.size(), mimed.name, mimed.operations.size());
  return add({.kind = NodeKind::mime,
              .name = std::move(name),
              .operations = std::move(operations),
              .target = target});
}

NodeId KSearchSpace::input(std::size_t index) const {
  if (index >= inputs_.size())
    throw_error(ErrorCode::invalid_argument,
                "architecture space: input {} does not exist; the space has {} inputs", index,
                inputs_.size());
  return id_of(index);
}

const Node& KSearchSpace::node(NodeId id) const {
  const auto index = static_cast<std::int64_t>(id);
  if (index < 0 || index >= static_cast<std::int64_t>(nodes_.size()))
    throw_error(ErrorCode::invalid_argument,
                "architecture space: node {} does not exist; the nodes are 0…{}", index,
                nodes_.size() - 1);
  return nodes_[index_of(id)];
}

NodeId KSearchSpace::find(std::string_view name) const {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return id_of(i);
    known.push_back(nodes_[i].name);
  }
  throw_unknown_name("node", name, known);
}

void KSearchSpace::connect(NodeId from, NodeId to) {
  const Node& source = node(from);
  (void)node(to);  // throws when there is none
  Node& follower = nodes_[index_of(to)];
  if (follower.kind == NodeKind::input)
    throw_error(ErrorCode::invalid_argument,
                "connect: '{}' is an input of the model; nothing can be connected to it",
                follower.name);
  if (std::find(follower.sources.begin(), follower.sources.end(), from) != follower.sources.end())
    throw_error(ErrorCode::already_exists, "connect: '{}' and '{}' are already connected",
                source.name, follower.name);
  follower.sources.push_back(from);
  order_->forget();
}

void KSearchSpace::set_outputs(std::vector<NodeId> nodes) {
  for (const NodeId id : nodes) (void)node(id);
  chosen_outputs_ = std::move(nodes);
  order_->forget();
}

std::vector<NodeId> KSearchSpace::sinks() const {
  std::vector<NodeId> ids;
  for (const std::size_t index : sinks_of(nodes_)) ids.push_back(id_of(index));
  return ids;
}

std::shared_ptr<const GraphOrder> KSearchSpace::order() const {
  return order_->get([this] { return order_graph(nodes_, chosen_outputs_, outputs_.size()); });
}

void KSearchSpace::check() const { (void)order(); }

std::vector<NodeId> KSearchSpace::variable_nodes() const {
  std::vector<NodeId> ids;
  for (const std::size_t index : order()->variables) ids.push_back(id_of(index));
  return ids;
}

std::vector<NodeId> KSearchSpace::output_nodes() const {
  std::vector<NodeId> ids;
  for (const std::size_t index : order()->outputs) ids.push_back(id_of(index));
  return ids;
}

std::vector<std::int64_t> KSearchSpace::choices() const {
  std::vector<std::int64_t> counts;
  for (const std::size_t index : order()->variables)
    counts.push_back(static_cast<std::int64_t>(nodes_[index].operations.size()));
  return counts;
}

std::size_t KSearchSpace::length() const { return order()->variables.size(); }

double KSearchSpace::size() const {
  double product = 1;
  for (const std::int64_t count : choices()) product *= static_cast<double>(count);
  return product;
}

void KSearchSpace::check_architecture(std::span<const std::int64_t> arch_seq) const {
  const auto& variables = order()->variables;
  if (arch_seq.size() != variables.size()) {
    const bool few = arch_seq.size() < variables.size();
    throw_error(
        ErrorCode::invalid_argument, "arch_seq: {} number{} for {} variable node{}; {}",
        arch_seq.size(), arch_seq.size() == 1 ? "" : "s", variables.size(),
        variables.size() == 1 ? "" : "s",
        few ? fmt::format("the first without one is '{}'", nodes_[variables[arch_seq.size()]].name)
            : std::string("remove those behind the last node"));
  }
  for (std::size_t i = 0; i < arch_seq.size(); ++i) {
    const Node& its = nodes_[variables[i]];
    if (arch_seq[i] < 0 || arch_seq[i] >= static_cast<std::int64_t>(its.operations.size()))
      throw_error(ErrorCode::invalid_argument,
                  "arch_seq[{}] is {}, but node '{}' has the operations 0…{}", i, arch_seq[i],
                  its.name, its.operations.size() - 1);
  }
}

std::vector<std::int64_t> KSearchSpace::from_fractions(std::span<const double> fractions) const {
  const auto counts = choices();
  std::vector<std::int64_t> arch_seq;
  for (std::size_t i = 0; i < fractions.size() && i < counts.size(); ++i) {
    if (!(fractions[i] >= 0 && fractions[i] <= 1))
      throw_error(ErrorCode::invalid_argument,
                  "arch_seq[{}] is {}, but fractions lie between 0 and 1 (node '{}')", i,
                  fractions[i], nodes_[order()->variables[i]].name);
    const auto count = static_cast<double>(counts[i]);
    arch_seq.push_back(std::min(static_cast<std::int64_t>(fractions[i] * count), counts[i] - 1));
  }
  arch_seq.resize(fractions.size());  // so that a wrong length is seen
  check_architecture(arch_seq);
  return arch_seq;
}

std::string KSearchSpace::describe(std::span<const std::int64_t> arch_seq) const {
  check_architecture(arch_seq);
  const auto& variables = order()->variables;
  std::string text;
  for (std::size_t i = 0; i < arch_seq.size(); ++i) {
    const Node& its = nodes_[variables[i]];
    text += fmt::format("{}: {}\n", its.name,
                        its.operations[static_cast<std::size_t>(arch_seq[i])].to_string());
  }
  return text;
}

std::shared_ptr<Model> KSearchSpace::model(std::span<const std::int64_t> arch_seq) const {
  check_architecture(arch_seq);
  return build_model(draw_blueprint(*this, *order(), arch_seq));
}

}  // namespace kolo::nas

// Architecture spaces: graphs of nodes, some of which choose among operations.
//
//   KSearchSpace space({{10}}, {{1}});
//   const NodeId layer = space.add_variable("layer", {op::identity(), op::dense(16, "relu")});
//   const NodeId output = space.add_constant("output", op::dense(1));
//   space.connect(space.input(), layer);
//   space.connect(layer, output);
//   auto model = space.model(std::vector<std::int64_t>{1});   // Dense(16, relu), then the output
//
// An architecture is a sequence of numbers, one for each VariableNode in graph order: every node
// after those it depends on (what is connected to it, and the sources of its Connect operations),
// and where that leaves a choice, in the order in which they were added.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kolo/nas/model.h"
#include "kolo/nas/operations.h"

namespace kolo::nas {

enum class NodeKind {
  input,
  variable,  ///< several operations, one of which an architecture chooses
  constant,  ///< one operation
  mirror,    ///< the same layer as its target: shared weights
  mime,      ///< the same choice as its target, with weights of its own
};

/// "VariableNode" …
std::string_view to_string(NodeKind kind) noexcept;

struct Node {
  NodeKind kind;
  std::string name;
  std::vector<Operation> operations{};  ///< none: input, mirror
  NodeId target{-1};                    ///< of mirror and mime
  std::vector<NodeId> sources{};        ///< whose outputs come in, in this order
};

struct GraphOrder;  // src/nas/graph/graph_order.h

/// Building it is for one thread; afterwards every const function may be called from any.
class KSearchSpace {
 public:
  /// Shapes of one sample, without the batch; at least one each. Throws invalid_argument.
  KSearchSpace(std::vector<Shape> input_shapes, std::vector<Shape> output_shapes);
  ~KSearchSpace();
  KSearchSpace(const KSearchSpace&) = delete;
  KSearchSpace& operator=(const KSearchSpace&) = delete;

  /// Nodes. Names are those of the model's submodules: unique, without dots; an empty one is
  /// replaced ("variable_3"). Each throws already_exists for a name that is taken, invalid_argument
  /// for bad names, operations and targets, not_found for unknown operations.
  NodeId add_variable(std::string name, std::vector<Operation> operations);
  NodeId add_constant(std::string name, Operation operation);
  /// `target`: a variable, constant or mime node.
  NodeId add_mirror(std::string name, NodeId target);
  /// `target`: a variable node. `operations`: one for each of the target's; none: the same.
  NodeId add_mime(std::string name, NodeId target, std::vector<Operation> operations = {});
  /// The node of an input.
  [[nodiscard]] NodeId input(std::size_t index = 0) const;

  /// The output of `from` comes into `to`, after what was connected before. Throws already_exists
  /// when they are connected, invalid_argument when `to` is an input or a node is unknown.
  void connect(NodeId from, NodeId to);
  /// Which nodes are the outputs; otherwise all nodes that lead nowhere, as they were added.
  void set_outputs(std::vector<NodeId> nodes);

  [[nodiscard]] const std::vector<Shape>& input_shapes() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<Shape>& output_shapes() const noexcept { return outputs_; }
  /// A NodeId is an index.
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// Throws invalid_argument.
  [[nodiscard]] const Node& node(NodeId id) const;
  /// Throws not_found, listing the known ones.
  [[nodiscard]] NodeId find(std::string_view name) const;
  /// Nodes that lead nowhere, inputs apart.
  [[nodiscard]] std::vector<NodeId> sinks() const;

  /// Everything that can be said without an architecture. Throws invalid_argument: a cycle (naming
  /// its nodes), nodes that no input reaches or that lead to no output, more or fewer outputs than
  /// shapes. All functions below check, too.
  void check() const;

  [[nodiscard]] std::vector<NodeId> variable_nodes() const;  ///< in graph order
  [[nodiscard]] std::vector<NodeId> output_nodes() const;
  /// How many operations each VariableNode has, in graph order.
  [[nodiscard]] std::vector<std::int64_t> choices() const;
  /// How many numbers an architecture has.
  [[nodiscard]] std::size_t length() const;
  /// How many architectures there are; exact below 2^53.
  [[nodiscard]] double size() const;

  /// Throws invalid_argument, naming the node, for a wrong length or a number out of range.
  void check_architecture(std::span<const std::int64_t> arch_seq) const;
  /// Numbers f from 0 to 1 as architecture: operation int(f·n) of n, the last one for 1.
  [[nodiscard]] std::vector<std::int64_t> from_fractions(std::span<const double> fractions) const;
  /// "layer_1: Dense(units=16, activation=relu)", one line per variable node.
  [[nodiscard]] std::string describe(std::span<const std::int64_t> arch_seq) const;

  /// The architecture as module, with new weights from libtorch's default generator
  /// (torch::manual_seed): Glorot's uniform distribution, biases 0, as Keras begins. Layers that
  /// lead to no output in this architecture are left out. Throws invalid_argument naming node,
  /// operation and shapes where shapes cannot meet.
  [[nodiscard]] std::shared_ptr<Model> model(std::span<const std::int64_t> arch_seq) const;

  /// The graph in Graphviz' language. With an architecture: its operations, and only the skip
  /// connections that it chooses.
  [[nodiscard]] std::string to_dot(
      std::optional<std::span<const std::int64_t>> arch_seq = std::nullopt) const;
  /// The same as a drawing that stands alone.
  [[nodiscard]] std::string to_svg(
      std::optional<std::span<const std::int64_t>> arch_seq = std::nullopt) const;

  /// All of it as data: nodes, operations, connections. Two spaces are the same when this is.
  /// docs/nas-spaces.md describes the form; space_from_value reads it.
  [[nodiscard]] Value to_value() const;

 private:
  class KeptOrder;

  NodeId add(Node node);
  [[nodiscard]] std::shared_ptr<const GraphOrder> order() const;

  std::vector<Shape> inputs_, outputs_;
  std::vector<Node> nodes_;
  std::vector<NodeId> chosen_outputs_;
  std::unique_ptr<KeptOrder> order_;
};

/// The space that to_value wrote, or that somebody wrote by hand in the same form. Without
/// "output_nodes", add_outputs ends it. Operations of the user's own kinds cannot be read. Throws
/// invalid_argument, not_found and already_exists, naming the node.
std::shared_ptr<KSearchSpace> space_from_value(const Value& written);

/// What AutoKSearchSpace does: merges all nodes that lead nowhere by Concatenate, flattened where
/// they have several dimensions, and adds a Dense layer for each output. Its activation is `none`:
/// for classes, too, where the reference adds softmax, because libtorch's losses take logits.
void add_outputs(KSearchSpace& space);

}  // namespace kolo::nas

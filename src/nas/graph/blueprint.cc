// Nodes are visited in graph order. A node's value is the list of tensors that it passes on: none
// if it is off (Zero, or nothing comes in), several for Connect, one otherwise. Identity passes its
// input on without a layer of its own. At the end, applications whose output reaches no output of
// the model are removed, so that every parameter gets a gradient.
#include "nas/graph/blueprint.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

using Tensors = std::vector<std::uint32_t>;

/// Goes through the nodes in order and finds the tensors that each one gives on.
class Draughtsman {
 public:
  Draughtsman(const KSearchSpace& space, const GraphOrder& order,
              std::span<const std::int64_t> arch_seq)
      : space_(space), nodes_(space.nodes()), order_(order), arch_seq_(arch_seq) {
    plan_.space = &space;
    plan_.values.resize(nodes_.size());
  }

  Blueprint draw() {
    for (const Shape& shape : space_.input_shapes()) plan_.shapes.push_back(shape);
    for (std::uint32_t i = 0; i < space_.input_shapes().size(); ++i) plan_.values[i] = {i};
    for (const std::size_t node : order_.nodes)
      if (nodes_[node].kind != NodeKind::input) apply(node);
    find_outputs();
    leave_out_useless();
    return std::move(plan_);
  }

 private:
  void apply(std::size_t node) {
    const Operation& operation = *chosen_operation(nodes_, order_, node, arch_seq_);
    const OperationKind* kind = &kind_of(operation);
    if (kind == &kinds::zero) return;
    Tensors incoming = gather(node, operation);
    if (kind == &kinds::connect) {  // several are given on: who merges them sees all
      plan_.values[node] = std::move(incoming);
      return;
    }
    if (kind->arity == Arity::none) incoming = {0};
    if (incoming.empty()) return;  // everything before is off, and so is this
    if (kind->arity == Arity::one && incoming.size() > 1) throw_unmerged(node, operation, incoming);

    std::vector<Shape> shapes = shapes_of(incoming);
    Shape shape;
    try {
      shape = kind->infer(Arguments(operation.arguments), shapes);
    } catch (const Error& error) {
      throw_error(ErrorCode::invalid_argument, "node '{}', {} on {}: {}", nodes_[node].name,
                  operation.to_string(), describe(incoming), error.message());
    }
    if (kind == &kinds::identity) {
      plan_.values[node] = std::move(incoming);
      return;
    }
    const auto output = static_cast<std::uint32_t>(plan_.shapes.size());
    const std::size_t owner =
        nodes_[node].kind == NodeKind::mirror ? index_of(nodes_[node].target) : node;
    plan_.shapes.push_back(std::move(shape));
    plan_.values[node] = {output};
    plan_.applications.push_back(
        {node, owner, &operation, std::move(incoming), std::move(shapes), output});
    check_mirror(plan_.applications.back());
  }

  Tensors gather(std::size_t node, const Operation& operation) const {
    Tensors incoming;
    const auto take = [&](NodeId source) {
      const Tensors& value = plan_.values[index_of(source)];
      incoming.insert(incoming.end(), value.begin(), value.end());
    };
    for (const NodeId source : nodes_[node].sources) take(source);
    for (const NodeId source : connect_sources(operation)) take(source);
    return incoming;
  }

  /// The first application of a shared layer decides its weights; the others must fit them.
  void check_mirror(const Blueprint::Application& made) const {
    for (const auto& other : plan_.applications)
      if (other.owner == made.owner && other.operand_shapes != made.operand_shapes)
        throw_error(ErrorCode::invalid_argument,
                    "node '{}' shares the layer {} with '{}', which takes {}, but {} comes in; "
                    "connect tensors of the same shape, or use a MimeNode",
                    nodes_[made.node].name, made.operation->to_string(), nodes_[other.node].name,
                    describe(other.operands), describe(made.operands));
  }

  [[noreturn]] void throw_unmerged(std::size_t node, const Operation& operation,
                                   const Tensors& incoming) const {
    throw_error(ErrorCode::invalid_argument,
                "node '{}', {}: {} tensors come in, {}, and it takes one; merge them in a node "
                "before it, by Concatenate, AddByPadding or AddByProjecting",
                nodes_[node].name, operation.to_string(), incoming.size(), describe(incoming));
  }

  void find_outputs() {
    for (std::size_t i = 0; i < order_.outputs.size(); ++i) {
      const Node& node = nodes_[order_.outputs[i]];
      const Tensors& value = plan_.values[order_.outputs[i]];
      const Shape& wanted = space_.output_shapes()[i];
      if (value.empty())
        throw_error(ErrorCode::invalid_argument,
                    "output node '{}': nothing reaches it in this architecture, {} is wanted",
                    node.name, to_string(wanted));
      if (value.size() > 1)
        throw_error(ErrorCode::invalid_argument,
                    "output node '{}' gives {} tensors, {}; merge them into one of {}", node.name,
                    value.size(), describe(value), to_string(wanted));
      if (plan_.shapes[value[0]] != wanted)
        throw_error(ErrorCode::invalid_argument,
                    "output node '{}', {}: gives {}, but the output shape is {}", node.name,
                    operation_text(order_.outputs[i]), to_string(plan_.shapes[value[0]]),
                    to_string(wanted));
      plan_.outputs.push_back(value[0]);
    }
  }

  std::string operation_text(std::size_t node) const {
    const Operation* operation = chosen_operation(nodes_, order_, node, arch_seq_);
    return operation != nullptr ? operation->to_string() : "an input";
  }

  /// Parameters without a gradient would puzzle optimizers and other ranks.
  void leave_out_useless() {
    std::vector<bool> needed(plan_.shapes.size(), false);
    for (const std::uint32_t output : plan_.outputs) needed[output] = true;
    auto& all = plan_.applications;
    for (auto application = all.rbegin(); application != all.rend(); ++application)
      if (needed[application->output])
        for (const std::uint32_t operand : application->operands) needed[operand] = true;
    std::erase_if(all, [&](const auto& application) { return !needed[application.output]; });
  }

  std::vector<Shape> shapes_of(const Tensors& tensors) const {
    std::vector<Shape> shapes;
    shapes.reserve(tensors.size());
    for (const std::uint32_t tensor : tensors) shapes.push_back(plan_.shapes[tensor]);
    return shapes;
  }

  std::string describe(const Tensors& tensors) const {
    std::vector<std::string> texts;
    for (const std::uint32_t tensor : tensors) texts.push_back(to_string(plan_.shapes[tensor]));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  const KSearchSpace& space_;
  const std::vector<Node>& nodes_;
  const GraphOrder& order_;
  std::span<const std::int64_t> arch_seq_;
  Blueprint plan_{};
};

}  // namespace

const Operation* chosen_operation(const std::vector<Node>& nodes, const GraphOrder& order,
                                  std::size_t node, std::span<const std::int64_t> arch_seq) {
  const auto& operations = with_operations(nodes, nodes[node]).operations;
  if (operations.empty()) return nullptr;
  const std::int64_t place = order.decided_by[node];
  return &operations[place < 0
                         ? 0
                         : static_cast<std::size_t>(arch_seq[static_cast<std::size_t>(place)])];
}

Blueprint draw_blueprint(const KSearchSpace& space, const GraphOrder& order,
                         std::span<const std::int64_t> arch_seq) {
  return Draughtsman(space, order, arch_seq).draw();
}

}  // namespace kolo::nas

// An architecture before it has weights: which operation each node does, on which tensors, of which
// shapes. What cannot be built is found here; making the layers only follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kolo/nas/search_space.h"
#include "nas/graph/graph_order.h"

namespace kolo::nas {

/// Tensors have numbers: first the inputs of the model, then one for each operation that makes one.
struct Blueprint {
  struct Application {
    std::size_t node;   ///< that applies it
    std::size_t owner;  ///< whose layer it is: another one for a mirror
    const Operation* operation;
    std::vector<std::uint32_t> operands;
    std::vector<Shape> operand_shapes;
    std::uint32_t output;
  };
  std::vector<Application> applications;  ///< in graph order; only those that outputs need
  std::vector<Shape> shapes;              ///< of each tensor
  std::vector<std::uint32_t> outputs;
  /// Of each node: the tensors that come out. None: it is off.
  std::vector<std::vector<std::uint32_t>> values;
  const KSearchSpace* space;
};

/// The operation that a node does in an architecture; null for inputs.
const Operation* chosen_operation(const std::vector<Node>& nodes, const GraphOrder& order,
                                  std::size_t node, std::span<const std::int64_t> arch_seq);

/// `arch_seq` is checked. Throws invalid_argument, naming node, operation and shapes.
Blueprint draw_blueprint(const KSearchSpace& space, const GraphOrder& order,
                         std::span<const std::int64_t> arch_seq);

/// Makes the layers, in graph order.
std::shared_ptr<Model> build_model(const Blueprint& blueprint);

}  // namespace kolo::nas

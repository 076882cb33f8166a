// Spaces of dense layers: one_layer, simple_deep, dense_skip_co.
#include <deque>

#include "base/errors.h"
#include "kolo/nas/spaces.h"
#include "nas/spaces/settings.h"

namespace kolo::nas {
namespace {

constexpr std::int64_t kMostLayers = 1000;

/// Dense(1…10, relu).
void add_small_dense(std::vector<Operation>& operations) {
  for (std::int64_t units = 1; units <= 10; ++units) operations.push_back(op::dense(units, "relu"));
}

/// Identity; Dense of 16, 32, …, 96 units with each of five activations.
std::vector<Operation> skip_co_operations() {
  std::vector<Operation> operations{op::identity()};
  for (std::int64_t units = 16; units <= 96; units += 16)
    for (const char* activation : {"none", "swish", "relu", "tanh", "sigmoid"})
      operations.push_back(op::dense(units, activation));
  return operations;
}

}  // namespace

std::shared_ptr<KSearchSpace> one_layer(const std::vector<Shape>& inputs,
                                        const std::vector<Shape>& outputs, const Value& settings) {
  const SpaceSettings known("one_layer", settings, {});
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  const NodeId source = merged_inputs(*space);
  std::vector<Operation> operations;
  add_small_dense(operations);
  space->connect(source, space->add_variable("layer_1", std::move(operations)));
  add_outputs(*space);
  space->check();
  return space;
}

std::shared_ptr<KSearchSpace> simple_deep(const std::vector<Shape>& inputs,
                                          const std::vector<Shape>& outputs,
                                          const Value& settings) {
  const SpaceSettings known("simple_deep", settings, {"num_layers"});
  const std::int64_t num_layers = known.integer("num_layers", 10, 1, kMostLayers);
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  NodeId previous = merged_inputs(*space);
  for (std::int64_t layer = 1; layer <= num_layers; ++layer) {
    std::vector<Operation> operations{op::identity()};
    add_small_dense(operations);
    const NodeId node =
        space->add_variable("layer_" + std::to_string(layer), std::move(operations));
    space->connect(previous, node);
    previous = node;
  }
  add_outputs(*space);
  space->check();
  return space;
}

/// Balaprakash et al. / Egele et al., "AgEBO-Tabular", 2021: the space for tables of data. After
/// each layer, up to three binary choices add the outputs of what came before (anchors), projected
/// to the units of the layer.
std::shared_ptr<KSearchSpace> dense_skip_co(const std::vector<Shape>& inputs,
                                            const std::vector<Shape>& outputs,
                                            const Value& settings) {
  const SpaceSettings known("dense_skip_co", settings, {"num_layers"});
  const std::int64_t num_layers = known.integer("num_layers", 10, 1, kMostLayers);
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  const auto operations = skip_co_operations();
  NodeId previous = merged_inputs(*space);
  std::deque<NodeId> anchors{previous};
  for (std::int64_t layer = 1; layer <= num_layers; ++layer) {
    const std::string number = std::to_string(layer);
    const NodeId dense = space->add_variable("layer_" + number, operations);
    space->connect(previous, dense);
    const NodeId merge = space->add_constant("merge_" + number, op::add_by_projecting("relu"));
    space->connect(dense, merge);  // first: the others are projected to its units
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      const NodeId skip = space->add_variable("skip_" + number + "_" + std::to_string(i + 1),
                                              {op::zero(), op::connect({anchors[i]})});
      space->connect(skip, merge);
    }
    previous = merge;
    anchors.push_back(merge);
    if (anchors.size() > 3) anchors.pop_front();
  }
  add_outputs(*space);
  space->check();
  return space;
}

}  // namespace kolo::nas

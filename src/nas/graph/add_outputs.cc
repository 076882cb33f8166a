#include <algorithm>
#include <array>

#include "base/errors.h"
#include "kolo/nas/search_space.h"

namespace kolo::nas {
namespace {

/// Operations that give one dimension where one comes in.
constexpr std::array<std::string_view, 11> kStaysFlat = {
    "Identity",   "Zero",    "Connect",     "Dense",        "BatchNormalization", "Dropout",
    "Activation", "Flatten", "Concatenate", "AddByPadding", "AddByProjecting"};

/// True when every tensor of every architecture has one dimension.
bool is_flat(const KSearchSpace& space) {
  const auto& inputs = space.input_shapes();
  if (std::any_of(inputs.begin(), inputs.end(),
                  [](const Shape& shape) { return shape.size() > 1; }))
    return false;
  for (const Node& node : space.nodes())
    for (const Operation& operation : node.operations)
      if (operation.kind != nullptr ||
          std::find(kStaysFlat.begin(), kStaysFlat.end(), operation.name) == kStaysFlat.end())
        return false;
  return true;
}

/// One node with all features in one dimension.
NodeId merge(KSearchSpace& space, const std::vector<NodeId>& sinks) {
  const bool flat = is_flat(space);
  if (flat && sinks.size() == 1) return sinks[0];
  Operation operation = sinks.size() == 1 ? op::flatten() : op::concatenate();
  if (!flat && sinks.size() > 1) operation.arguments.as_dict().emplace("flatten", true);
  const NodeId merged = space.add_constant("features", std::move(operation));
  for (const NodeId sink : sinks) space.connect(sink, merged);
  return merged;
}

}  // namespace

void add_outputs(KSearchSpace& space) {
  const auto sinks = space.sinks();
  if (sinks.empty())
    throw_error(ErrorCode::failed_precondition,
                "add_outputs: the space has no node that leads nowhere; add nodes first");
  const NodeId merged = merge(space, sinks);
  std::vector<NodeId> outputs;
  for (std::size_t i = 0; i < space.output_shapes().size(); ++i) {
    const Shape& shape = space.output_shapes()[i];
    const std::string name = "output_" + std::to_string(i);
    std::int64_t units = 1;
    for (const std::int64_t extent : shape) units *= extent;
    NodeId output = space.add_constant(name, op::dense(units));
    space.connect(merged, output);
    if (shape.size() > 1) {
      const NodeId shaped = space.add_constant(name + "_shape", op::reshape(shape));
      space.connect(output, shaped);
      output = shaped;
    }
    outputs.push_back(output);
  }
  space.set_outputs(std::move(outputs));
}

}  // namespace kolo::nas

// The table of spaces. Adding one is a function and a row.
#include "kolo/nas/spaces.h"

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::nas {
namespace {

using MakeSpace = std::shared_ptr<KSearchSpace> (*)(const std::vector<Shape>&,
                                                    const std::vector<Shape>&, const Value&);

constexpr Entry<MakeSpace> kSpaces[] = {
    {"one_layer", "one node: Dense(1…10, relu)", one_layer},
    {"simple_deep", "ten nodes: Identity or Dense(1…10, relu)", simple_deep},
    {"dense_skip_co", "dense layers of 31 operations with skip connections", dense_skip_co},
    {"conv_cells", "cells of convolutions and pools for small images", conv_cells},
    {"candle_mlp", "CANDLE's perceptrons: dense layers and dropout, a branch per input",
     candle_mlp},
    {"nt3", "CANDLE's NT3: convolutions of a long signal, then dense layers", nt3},
    {"graph", "a graph that the settings write down node by node", graph},
    {"combo", "CANDLE's Combo: a cell line and two drugs that share layers", combo},
};

constexpr Registry<MakeSpace> kSpaceTable{"architecture space", kSpaces};

}  // namespace

std::shared_ptr<KSearchSpace> graph(const std::vector<Shape>& inputs,
                                    const std::vector<Shape>& outputs, const Value& settings) {
  if (!settings.is_dict() || settings.find_path("nodes") == nullptr)
    throw_error(ErrorCode::invalid_argument,
                "space graph: the settings must have 'nodes', a list of nodes, but are {}",
                settings.to_string());
  Value::Dict written = settings.as_dict();
  written.erase("regression");
  const auto list_of = [](const std::vector<Shape>& shapes) {
    Value::List list;
    for (const Shape& shape : shapes) list.emplace_back(Value::List(shape.begin(), shape.end()));
    return list;
  };
  written["inputs"] = Value(list_of(inputs));
  written["outputs"] = Value(list_of(outputs));
  return space_from_value(Value(std::move(written)));
}

std::vector<SpaceInfo> spaces() {
  std::vector<SpaceInfo> infos;
  for (const auto& entry : kSpaceTable.entries()) infos.push_back({entry.name, entry.summary});
  return infos;
}

SpaceFunction space_function(std::string_view name) { return kSpaceTable.at(name).make; }

}  // namespace kolo::nas

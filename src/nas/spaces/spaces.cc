// The table of spaces. Adding one is a function and a row.
#include "kolo/nas/spaces.h"

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
    {"combo", "CANDLE's Combo: a cell line and two drugs that share layers", combo},
};

constexpr Registry<MakeSpace> kTable{"architecture space", kSpaces};

}  // namespace

std::vector<SpaceInfo> spaces() {
  std::vector<SpaceInfo> infos;
  for (const auto& entry : kTable.entries()) infos.push_back({entry.name, entry.summary});
  return infos;
}

SpaceFunction space_function(std::string_view name) { return kTable.at(name).make; }

}  // namespace kolo::nas

// Architecture spaces that come with kolo. docs/nas-spaces.md describes them and their settings.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kolo/nas/search_space.h"

namespace kolo::nas {

/// Makes a space for these shapes. `settings` is a dictionary, or nothing for the defaults; an
/// unknown setting throws invalid_argument and lists the known ones.
using SpaceFunction = std::function<std::shared_ptr<KSearchSpace>(
    const std::vector<Shape>& inputs, const std::vector<Shape>& outputs, const Value& settings)>;

/// One node: Dense(1…10, relu). 10 architectures.
std::shared_ptr<KSearchSpace> one_layer(const std::vector<Shape>& inputs,
                                        const std::vector<Shape>& outputs,
                                        const Value& settings = {});

/// `num_layers` (10) nodes, each Identity or Dense(1…10, relu): 11^10 architectures.
std::shared_ptr<KSearchSpace> simple_deep(const std::vector<Shape>& inputs,
                                          const std::vector<Shape>& outputs,
                                          const Value& settings = {});

/// `num_layers` (10) dense layers of 31 operations, each followed by skip connections from the
/// three layers before: 31^10·2^27 architectures.
std::shared_ptr<KSearchSpace> dense_skip_co(const std::vector<Shape>& inputs,
                                            const std::vector<Shape>& outputs,
                                            const Value& settings = {});

/// Cells of convolutions and pools with skip connections, for small images {channels, height,
/// width}. Settings: num_cells (2), nodes_per_cell (2), filters ([8, 16]), stem_strides (1, or 2
/// for images above 16 x 16).
std::shared_ptr<KSearchSpace> conv_cells(const std::vector<Shape>& inputs,
                                         const std::vector<Shape>& outputs,
                                         const Value& settings = {});

/// The CANDLE multi-layer perceptrons of SC19: for each input num_layers (3) nodes of 13
/// operations, then as many over all of them. Settings: num_layers, dropout_rates ([0.05, 0.1,
/// 0.2]), share_equal_inputs (false: inputs of the same shape have layers of their own).
std::shared_ptr<KSearchSpace> candle_mlp(const std::vector<Shape>& inputs,
                                         const std::vector<Shape>& outputs,
                                         const Value& settings = {});

/// CANDLE's NT3 of SC19: one signal {channels, length} (or {length}), 12 nodes.
std::shared_ptr<KSearchSpace> nt3(const std::vector<Shape>& inputs,
                                  const std::vector<Shape>& outputs, const Value& settings = {});

/// CANDLE's Combo of SC21: three inputs, a cell line and two drugs, which share their layers:
/// 391^9·2^9 architectures.
std::shared_ptr<KSearchSpace> combo(const std::vector<Shape>& inputs,
                                    const std::vector<Shape>& outputs, const Value& settings = {});

/// A graph that is written down in the settings: `nodes`, and `output_nodes` if they are not to be
/// added. The form is that of KSearchSpace::to_value.
std::shared_ptr<KSearchSpace> graph(const std::vector<Shape>& inputs,
                                    const std::vector<Shape>& outputs, const Value& settings);

struct SpaceInfo {
  std::string_view name;
  std::string_view summary;
};

/// The spaces that have names.
std::vector<SpaceInfo> spaces();
/// Throws not_found, listing the known ones.
SpaceFunction space_function(std::string_view name);

}  // namespace kolo::nas

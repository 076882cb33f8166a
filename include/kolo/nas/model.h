// The libtorch module that is built from an architecture.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kolo/nas/operations.h"

namespace kolo::nas {

/// The order in which layers are applied, in numbers only: nothing is looked up during forward.
struct Wiring {
  /// Layer `layer` is applied to the slots operands[begin…end); its output goes to slot `output`.
  /// Slots operands[end…release_end) are not needed afterwards.
  struct Step {
    Layer* layer;
    std::uint32_t begin, end, release_end;
    std::uint32_t output;
  };
  std::vector<Step> steps;
  std::vector<std::uint32_t> operands;
  std::vector<std::uint32_t> outputs;  ///< slots of the outputs
  std::uint32_t slots = 0;             ///< the first ones are the inputs
};

/// Made by KSearchSpace::model. Its submodules have the names of their nodes, so that the names of
/// parameters ("layer_1.weight") are the same whenever the same architecture is built. One thread
/// at a time, as any module of libtorch.
class Model : public torch::nn::Module {
 public:
  using NamedLayer = std::pair<std::string, std::shared_ptr<Layer>>;
  Model(std::vector<Shape> inputs, std::vector<Shape> outputs, std::vector<NamedLayer> layers,
        Wiring wiring);

  /// One tensor per input, batch x shape each; answers one per output. Throws invalid_argument when
  /// there are more or fewer, or one has another shape.
  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs);

  /// Trainable numbers; those of shared layers count once.
  [[nodiscard]] std::int64_t num_parameters() const;

  [[nodiscard]] const std::vector<Shape>& input_shapes() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<Shape>& output_shapes() const noexcept { return outputs_; }

 private:
  void check_inputs(const std::vector<torch::Tensor>& inputs) const;

  std::vector<Shape> inputs_, outputs_;
  Wiring wiring_;
};

}  // namespace kolo::nas

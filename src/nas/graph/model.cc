// Tensors live in numbered slots. A step reads the slots of its operands, writes one slot, and
// releases those that no later step reads; which these are is found by going through the steps
// backwards once. An operation without a layer (such as Identity) costs no step: its output has the
// slot of its input.
#include "kolo/nas/model.h"

#include <algorithm>

#include "base/errors.h"
#include "nas/graph/blueprint.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {

Model::Model(std::vector<Shape> inputs, std::vector<Shape> outputs, std::vector<NamedLayer> layers,
             Wiring wiring)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)), wiring_(std::move(wiring)) {
  for (auto& [name, layer] : layers) register_module(name, std::move(layer));
}

void Model::check_inputs(const std::vector<torch::Tensor>& inputs) const {
  if (inputs.size() != inputs_.size())
    throw_error(ErrorCode::invalid_argument, "model: {} tensors for {} inputs", inputs.size(),
                inputs_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto sizes = inputs[i].sizes();
    if (sizes.size() != inputs_[i].size() + 1 ||
        !std::equal(inputs_[i].begin(), inputs_[i].end(), sizes.begin() + 1))
      throw_error(ErrorCode::invalid_argument,
                  "model: input {} is {}, must be a batch of samples of {}", i,
                  to_string(sizes.vec()), to_string(inputs_[i]));
  }
}

std::vector<torch::Tensor> Model::forward(const std::vector<torch::Tensor>& inputs) {
  check_inputs(inputs);
  std::vector<torch::Tensor> slots(wiring_.slots);
  std::copy(inputs.begin(), inputs.end(), slots.begin());
  const std::span<const std::uint32_t> operands(wiring_.operands);
  for (const Wiring::Step& step : wiring_.steps) {
    slots[step.output] = step.layer->forward(
        Inputs(slots.data(), operands.subspan(step.begin, step.end - step.begin)));
    for (std::uint32_t i = step.end; i < step.release_end; ++i) slots[operands[i]].reset();
  }
  std::vector<torch::Tensor> outputs;
  outputs.reserve(wiring_.outputs.size());
  for (const std::uint32_t slot : wiring_.outputs) outputs.push_back(slots[slot]);
  return outputs;
}

std::int64_t Model::num_parameters() const {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

namespace {

/// Layers and their order. A tensor that an operation passes on has the slot of where it came from.
class Builder {
 public:
  explicit Builder(const Blueprint& plan) : plan_(plan), slots_(plan.shapes.size()) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) slots_[i] = i;
    layers_.resize(plan.space->nodes().size());
  }

  std::shared_ptr<Model> build() {
    for (const auto& application : plan_.applications) {
      Layer* layer = layer_of(application);
      if (layer == nullptr) {
        slots_[application.output] = slots_[application.operands[0]];
        continue;
      }
      steps_.push_back({layer, &application});
    }
    return std::make_shared<Model>(plan_.space->input_shapes(), plan_.space->output_shapes(),
                                   std::move(named_), wire());
  }

 private:
  struct Planned {
    Layer* layer;
    const Blueprint::Application* application;
  };

  Layer* layer_of(const Blueprint::Application& application) {
    auto& layer = layers_[application.owner];
    if (layer) return layer.get();
    const OperationKind& kind = kind_of(*application.operation);
    layer = kind.make(Arguments(application.operation->arguments), application.operand_shapes);
    if (layer) named_.emplace_back(plan_.space->nodes()[application.owner].name, layer);
    return layer.get();
  }

  Wiring wire() {
    Wiring wiring;
    wiring.slots = static_cast<std::uint32_t>(plan_.shapes.size());
    for (const std::uint32_t output : plan_.outputs) wiring.outputs.push_back(slots_[output]);
    // Who needs a tensor last: found from behind.
    std::vector<bool> needed_later(plan_.shapes.size(), false);
    for (const std::uint32_t slot : wiring.outputs) needed_later[slot] = true;
    std::vector<std::vector<std::uint32_t>> released(steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;)
      for (const std::uint32_t operand : steps_[i].application->operands) {
        const std::uint32_t slot = slots_[operand];
        if (!needed_later[slot]) released[i].push_back(slot);
        needed_later[slot] = true;
      }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Wiring::Step step{steps_[i].layer, at(wiring), 0, 0, steps_[i].application->output};
      for (const std::uint32_t operand : steps_[i].application->operands)
        wiring.operands.push_back(slots_[operand]);
      step.end = at(wiring);
      wiring.operands.insert(wiring.operands.end(), released[i].begin(), released[i].end());
      step.release_end = at(wiring);
      wiring.steps.push_back(step);
    }
    return wiring;
  }

  static std::uint32_t at(const Wiring& wiring) {
    return static_cast<std::uint32_t>(wiring.operands.size());
  }

  const Blueprint& plan_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<Model::NamedLayer> named_;
  std::vector<Planned> steps_;
};

}  // namespace

std::shared_ptr<Model> build_model(const Blueprint& blueprint) {
  return Builder(blueprint).build();
}

}  // namespace kolo::nas

// The spaces of the CANDLE benchmarks: Balaprakash et al., "Scalable reinforcement-learning-based
// neural architecture search for cancer deep learning research", SC 2019 (candle_mlp, nt3), and
// Egele et al., "AgEBO-Tabular", SC 2021 (combo).
#include <map>

#include "base/errors.h"
#include "kolo/nas/spaces.h"
#include "nas/spaces/settings.h"

namespace kolo::nas {
namespace {

/// Adds a node behind the last one.
class Chain {
 public:
  Chain(KSearchSpace& space, NodeId begin) : space_(space), last_(begin) {}

  NodeId then(NodeId node) {
    space_.connect(last_, node);
    return last_ = node;
  }
  NodeId variable(const std::string& name, std::vector<Operation> operations) {
    return then(space_.add_variable(name, std::move(operations)));
  }
  [[nodiscard]] NodeId last() const { return last_; }

 private:
  KSearchSpace& space_;
  NodeId last_;
};

std::vector<Operation> mlp_operations(const std::vector<double>& dropout_rates) {
  std::vector<Operation> operations{op::identity()};
  for (const std::int64_t units : {100, 500, 1000})
    for (const char* activation : {"relu", "tanh", "sigmoid"})
      operations.push_back(op::dense(units, activation));
  for (const double rate : dropout_rates) operations.push_back(op::dropout(rate));
  return operations;
}

/// Inputs of several dimensions are flattened first.
NodeId flat_input(KSearchSpace& space, std::size_t index) {
  const NodeId input = space.input(index);
  if (space.input_shapes()[index].size() == 1) return input;
  const NodeId flat = space.add_constant("input_" + std::to_string(index) + "_flat", op::flatten());
  space.connect(input, flat);
  return flat;
}

}  // namespace

std::shared_ptr<KSearchSpace> candle_mlp(const std::vector<Shape>& inputs,
                                         const std::vector<Shape>& outputs, const Value& settings) {
  const SpaceSettings known("candle_mlp", settings,
                            {"num_layers", "dropout_rates", "share_equal_inputs"});
  const std::int64_t num_layers = known.integer("num_layers", 3, 1, 1000);
  const bool shares = known.flag("share_equal_inputs", false);
  const auto operations = mlp_operations(known.fractions("dropout_rates", {0.05, 0.1, 0.2}));
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);

  std::vector<NodeId> ends;
  std::map<Shape, std::vector<NodeId>> blocks;  // of the first input with each shape
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    Chain chain(*space, flat_input(*space, input));
    const std::string name = "input_" + std::to_string(input) + "_layer_";
    std::vector<NodeId>& block = blocks[inputs[input]];
    const bool mirrors = shares && !block.empty();
    for (std::int64_t layer = 1; layer <= num_layers; ++layer) {
      const std::string its_name = name + std::to_string(layer);
      if (mirrors)
        chain.then(space->add_mirror(its_name, block[static_cast<std::size_t>(layer - 1)]));
      else
        block.push_back(chain.variable(its_name, operations));
    }
    ends.push_back(chain.last());
  }
  if (ends.size() > 1) {
    const NodeId merge = space->add_constant("merge", op::concatenate());
    for (const NodeId end : ends) space->connect(end, merge);
    Chain chain(*space, merge);
    for (std::int64_t layer = 1; layer <= num_layers; ++layer)
      chain.variable("layer_" + std::to_string(layer), operations);
  }
  add_outputs(*space);
  space->check();
  return space;
}

std::shared_ptr<KSearchSpace> nt3(const std::vector<Shape>& inputs,
                                  const std::vector<Shape>& outputs, const Value& settings) {
  const SpaceSettings known("nt3", settings, {});
  if (inputs.size() != 1 || inputs[0].size() > 2)
    throw_error(ErrorCode::invalid_argument,
                "space nt3: needs one input of shape (channels, length) or (length), but got {}{}",
                inputs.empty() ? "none" : to_string(inputs[0]),
                inputs.size() > 1 ? " and others" : "");
  std::vector<Operation> conv{op::identity()}, pool{op::identity()}, dense{op::identity()},
      dropout{op::identity()}, activation{op::identity()};
  for (const std::int64_t size : {3, 4, 5, 6}) {
    conv.push_back(op::conv1d(8, size));
    pool.push_back(op::max_pooling1d(size, 0, "same"));
  }
  for (const char* name : {"relu", "tanh", "sigmoid"}) activation.push_back(op::activation(name));
  for (const std::int64_t units : {10, 50, 100, 200, 250, 500, 750, 1000})
    dense.push_back(op::dense(units));
  for (const double rate : {0.5, 0.4, 0.3, 0.2, 0.1, 0.05}) dropout.push_back(op::dropout(rate));

  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  Chain chain(*space, space->input());
  if (inputs[0].size() == 1)
    chain.then(space->add_constant("signal", op::reshape({1, inputs[0][0]})));
  for (const char* number : {"1", "2"}) {
    chain.variable(std::string("conv_") + number, conv);
    chain.variable(std::string("conv_activation_") + number, activation);
    chain.variable(std::string("pool_") + number, pool);
  }
  chain.then(space->add_constant("flatten", op::flatten()));
  for (const char* number : {"1", "2"}) {
    chain.variable(std::string("dense_") + number, dense);
    chain.variable(std::string("dense_activation_") + number, activation);
    chain.variable(std::string("dropout_") + number, dropout);
  }
  add_outputs(*space);
  space->check();
  return space;
}

namespace {

/// Three dense layers; after the second and third, skip connections from what lies before the layer
/// before: three choices.
class ComboNetwork {
 public:
  ComboNetwork(KSearchSpace& space, std::string name) : space_(space), name_(std::move(name)) {
    operations_.push_back(op::identity());
    for (std::int64_t units = 50; units <= 1975; units += 25)
      for (const char* activation : {"none", "swish", "relu", "tanh", "sigmoid"})
        operations_.push_back(op::dense(units, activation));
  }

  /// The network over `begin`. Another one given: its layers, and its choices of skip connections.
  NodeId build(NodeId begin, const ComboNetwork* shared = nullptr) {
    NodeId last = begin;
    std::vector<NodeId> anchors{begin};
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const std::string number = std::to_string(layer + 1);
      const std::string dense_name = name_ + "_layer_" + number;
      dense_.push_back(shared != nullptr ? space_.add_mirror(dense_name, shared->dense_[layer])
                                         : space_.add_variable(dense_name, operations_));
      space_.connect(last, dense_.back());
      const std::string merge_name = name_ + "_merge_" + number;
      merge_.push_back(shared != nullptr
                           ? space_.add_mirror(merge_name, shared->merge_[layer])
                           : space_.add_constant(merge_name, op::add_by_projecting("relu")));
      space_.connect(dense_.back(), merge_.back());
      for (std::size_t i = 0; i < layer; ++i) {
        const std::string name = name_ + "_skip_" + number + "_" + std::to_string(i + 1);
        const std::vector<Operation> choice{op::zero(), op::connect({anchors[i]})};
        skips_.push_back(shared != nullptr
                             ? space_.add_mime(name, shared->skips_[skips_.size()], choice)
                             : space_.add_variable(name, choice));
        space_.connect(skips_.back(), merge_.back());
      }
      last = merge_.back();
      anchors.push_back(last);
    }
    return last;
  }

 private:
  KSearchSpace& space_;
  std::string name_;
  std::vector<Operation> operations_;
  std::vector<NodeId> dense_, merge_, skips_;
};

}  // namespace

std::shared_ptr<KSearchSpace> combo(const std::vector<Shape>& inputs,
                                    const std::vector<Shape>& outputs, const Value& settings) {
  const SpaceSettings known("combo", settings, {});
  if (inputs.size() != 3 || inputs[1] != inputs[2])
    throw_error(
        ErrorCode::invalid_argument,
        "space combo: needs three inputs, a cell line and two drugs of the same shape, but got {}",
        inputs.size() == 3 ? to_string(inputs[1]) + " and " + to_string(inputs[2])
                           : std::to_string(inputs.size()) + " inputs");
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  ComboNetwork cell(*space, "cell"), drug_1(*space, "drug_1"), drug_2(*space, "drug_2"),
      merged(*space, "merged");
  const NodeId cell_end = cell.build(flat_input(*space, 0));
  const NodeId drug_1_end = drug_1.build(flat_input(*space, 1));
  const NodeId drug_2_end = drug_2.build(flat_input(*space, 2), &drug_1);
  const NodeId merge = space->add_constant("merge", op::concatenate());
  for (const NodeId end : {cell_end, drug_1_end, drug_2_end}) space->connect(end, merge);
  merged.build(merge);
  add_outputs(*space);
  space->check();
  return space;
}

}  // namespace kolo::nas

// Operations that make one tensor of several: Concatenate, AddByPadding, AddByProjecting.
#include <algorithm>

#include "base/errors.h"
#include "nas/graph/activations.h"
#include "nas/graph/initializers.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

using InputShapes = std::span<const Shape>;

/// The axis of a sample along which features lie: channels of images, else the last. `axis` counts
/// from the end when negative.
std::size_t feature_axis(const Arguments& arguments, std::size_t rank) {
  const auto extent = static_cast<std::int64_t>(rank);
  const std::int64_t axis = arguments.integer("axis", rank == 3 ? 0 : -1);
  if (axis < -extent || axis >= extent)
    throw_error(ErrorCode::invalid_argument, "axis {} is not one of a tensor with {} dimension{}",
                axis, rank, rank == 1 ? "" : "s");
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

// ---- Padding with zeros

std::size_t largest_rank(InputShapes inputs) {
  std::size_t rank = 0;
  for (const Shape& shape : inputs) rank = std::max(rank, shape.size());
  return rank;
}

/// With dimensions of extent 1 behind its own.
Shape with_rank(Shape shape, std::size_t rank) {
  shape.resize(rank, 1);
  return shape;
}

/// The smallest shape into which all fit.
Shape hull(InputShapes inputs) {
  Shape largest(largest_rank(inputs), 1);
  for (const Shape& shape : inputs)
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      largest[axis] = std::max(largest[axis], shape[axis]);
  return largest;
}

/// Brings one input to a shape that is at least as large, zeros behind its elements.
class Padding {
 public:
  Padding(const Shape& from, const Shape& to) {
    const Shape shape = with_rank(from, to.size());
    if (shape != from) view_ = shape;
    if (shape == to) return;
    for (std::size_t axis = to.size(); axis-- > 0;) {  // libtorch begins with the last axis
      zeros_.push_back(0);
      zeros_.push_back(to[axis] - shape[axis]);
    }
  }
  [[nodiscard]] torch::Tensor operator()(torch::Tensor tensor) const {
    if (!view_.empty()) {
      std::vector<std::int64_t> sizes{tensor.size(0)};
      sizes.insert(sizes.end(), view_.begin(), view_.end());
      tensor = tensor.reshape(sizes);
    }
    return zeros_.empty() ? tensor : torch::constant_pad_nd(tensor, zeros_, 0);
  }

 private:
  Shape view_;
  std::vector<std::int64_t> zeros_;
};

// ---- Concatenate

constexpr Argument kConcatenateArguments[] = {{"axis", ArgumentType::integer},
                                              {"flatten", ArgumentType::flag}};

std::vector<Shape> parts_to_join(const Arguments& arguments, InputShapes inputs) {
  std::vector<Shape> parts(inputs.begin(), inputs.end());
  if (arguments.flag("flatten", false))
    for (Shape& part : parts) part = {elements(part)};
  return parts;
}

Shape infer_concatenate(const Arguments& arguments, InputShapes inputs) {
  const std::vector<Shape> parts = parts_to_join(arguments, inputs);
  Shape shape = hull(parts);
  const std::size_t axis = feature_axis(arguments, shape.size());
  shape[axis] = 0;
  for (const Shape& part : parts) shape[axis] += with_rank(part, shape.size())[axis];
  return shape;
}

class ConcatenateLayer : public Layer {
 public:
  ConcatenateLayer(std::size_t axis, const std::vector<Shape>& parts, bool flatten)
      : axis_(static_cast<std::int64_t>(axis) + 1), flatten_(flatten) {
    const Shape largest = hull(parts);
    for (const Shape& part : parts) {
      Shape wanted = largest;
      wanted[axis] = with_rank(part, largest.size())[axis];
      paddings_.emplace_back(part, wanted);
    }
  }
  torch::Tensor forward(const Inputs& inputs) override {
    std::vector<torch::Tensor> parts;
    parts.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      parts.push_back(paddings_[i](flatten_ ? inputs[i].flatten(1) : inputs[i]));
    return torch::cat(parts, axis_);
  }

 private:
  std::int64_t axis_;
  bool flatten_;
  std::vector<Padding> paddings_;
};

std::shared_ptr<Layer> make_concatenate(const Arguments& arguments, InputShapes inputs) {
  const std::vector<Shape> parts = parts_to_join(arguments, inputs);
  if (parts.size() == 1 && parts[0] == inputs[0]) return nullptr;
  return std::make_shared<ConcatenateLayer>(feature_axis(arguments, largest_rank(parts)), parts,
                                            arguments.flag("flatten", false));
}

// ---- AddByPadding

constexpr Argument kAddByPaddingArguments[] = {{"activation", ArgumentType::activation}};

Shape infer_add_by_padding(const Arguments&, InputShapes inputs) { return hull(inputs); }

class AddByPaddingLayer : public Layer {
 public:
  AddByPaddingLayer(InputShapes inputs, Activation activation) : activation_(activation) {
    const Shape largest = hull(inputs);
    for (const Shape& input : inputs) paddings_.emplace_back(input, largest);
  }
  torch::Tensor forward(const Inputs& inputs) override {
    torch::Tensor sum = paddings_[0](inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i) sum = sum + paddings_[i](inputs[i]);
    return activate(sum, activation_);
  }

 private:
  std::vector<Padding> paddings_;
  Activation activation_;
};

std::shared_ptr<Layer> make_add_by_padding(const Arguments& arguments, InputShapes inputs) {
  const Activation activation = activation_of(arguments.text("activation", "none"));
  if (inputs.size() == 1 && activation == Activation::none) return nullptr;
  return std::make_shared<AddByPaddingLayer>(inputs, activation);
}

// ---- AddByProjecting

constexpr Argument kAddByProjectingArguments[] = {{"units", ArgumentType::count},
                                                  {"activation", ArgumentType::activation},
                                                  {"axis", ArgumentType::integer}};

/// The shape that all are brought to: that of the first, with `units` features where given.
Shape infer_add_by_projecting(const Arguments& arguments, InputShapes inputs) {
  Shape wanted = inputs[0];
  const std::size_t axis = feature_axis(arguments, wanted.size());
  wanted[axis] = arguments.integer("units", wanted[axis]);
  for (const Shape& input : inputs.subspan(1)) {
    if (wanted.size() == 1) continue;  // the others are flattened
    bool fits = input.size() == wanted.size();
    // Channels first: places are averaged until they are as many as the first has.
    for (std::size_t i = 0; fits && axis != 0 && i < wanted.size(); ++i)
      fits = i == axis || input[i] == wanted[i];
    if (!fits)
      throw_error(ErrorCode::invalid_argument, "cannot project {} to the shape {} of the first",
                  to_string(input), to_string(inputs[0]));
  }
  return wanted;
}

class AddByProjectingLayer : public Layer {
 public:
  AddByProjectingLayer(InputShapes inputs, const Shape& wanted, std::size_t axis,
                       Activation activation)
      : activation_(activation) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      projections_.push_back(projection(inputs[i], wanted, axis, std::to_string(i)));
  }

  torch::Tensor forward(const Inputs& inputs) override {
    torch::Tensor sum = projections_[0](inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i) sum = sum + projections_[i](inputs[i]);
    return activate(sum, activation_);
  }

 private:
  struct Projection {
    bool flatten = false;
    bool channels = false;             // a 1x1 convolution, not a product over the last axis
    std::vector<std::int64_t> places;  // to average to; empty: as they are
    torch::Tensor weight, bias;        // undefined: as many features as wanted

    torch::Tensor operator()(torch::Tensor input) const {
      if (flatten) input = input.flatten(1);
      if (places.size() == 1) input = torch::adaptive_avg_pool1d(input, places);
      if (places.size() == 2) input = torch::adaptive_avg_pool2d(input, places);
      if (!weight.defined()) return input;
      if (!channels) return torch::linear(input, weight, bias);
      return weight.dim() == 4 ? torch::conv2d(input, weight, bias)
                               : torch::conv1d(input, weight, bias);
    }
  };

  Projection projection(const Shape& from, const Shape& wanted, std::size_t axis,
                        const std::string& suffix) {
    Projection projection;
    projection.flatten = wanted.size() == 1 && from.size() > 1;
    projection.channels = wanted.size() > 1 && axis == 0;
    if (projection.channels && !std::equal(from.begin() + 1, from.end(), wanted.begin() + 1))
      projection.places.assign(wanted.begin() + 1, wanted.end());
    const std::int64_t features = projection.flatten ? elements(from) : from[axis];
    if (features == wanted[axis]) return projection;
    Shape shape{wanted[axis], features};
    if (projection.channels) shape.resize(wanted.size() + 1, 1);
    projection.weight =
        register_parameter("weight_" + suffix, glorot_uniform(shape, features, wanted[axis]));
    projection.bias = register_parameter("bias_" + suffix, torch::zeros({wanted[axis]}));
    return projection;
  }

  std::vector<Projection> projections_;
  Activation activation_;
};

std::shared_ptr<Layer> make_add_by_projecting(const Arguments& arguments, InputShapes inputs) {
  const Activation activation = activation_of(arguments.text("activation", "none"));
  const Shape wanted = infer_add_by_projecting(arguments, inputs);
  if (inputs.size() == 1 && activation == Activation::none && wanted == inputs[0]) return nullptr;
  return std::make_shared<AddByProjectingLayer>(inputs, wanted,
                                                feature_axis(arguments, wanted.size()), activation);
}

}  // namespace

namespace kinds {

const OperationKind concatenate{Arity::several, kConcatenateArguments, infer_concatenate,
                                make_concatenate};
const OperationKind add_by_padding{Arity::several, kAddByPaddingArguments, infer_add_by_padding,
                                   make_add_by_padding};
const OperationKind add_by_projecting{Arity::several, kAddByProjectingArguments,
                                      infer_add_by_projecting, make_add_by_projecting};

}  // namespace kinds
}  // namespace kolo::nas

// Dense, and what needs no neighbours: activation, dropout, batch normalisation, shapes, constants.
#include <cmath>

#include "base/errors.h"
#include "nas/graph/activations.h"
#include "nas/graph/initializers.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

using InputShapes = std::span<const Shape>;

Shape same_shape(const Arguments&, InputShapes inputs) { return inputs[0]; }
std::shared_ptr<Layer> no_layer(const Arguments&, InputShapes) { return nullptr; }

// ---- Dense

class DenseLayer : public Layer {
 public:
  DenseLayer(std::int64_t inputs, std::int64_t units, Activation activation, bool use_bias)
      : activation_(activation) {
    weight_ = register_parameter("weight", glorot_uniform({units, inputs}, inputs, units));
    if (use_bias) bias_ = register_parameter("bias", torch::zeros({units}));
  }
  torch::Tensor forward(const Inputs& inputs) override {
    return activate(torch::linear(inputs[0], weight_, bias_), activation_);
  }

 private:
  torch::Tensor weight_, bias_;
  Activation activation_;
};

constexpr Argument kDenseArguments[] = {{"units", ArgumentType::count, true},
                                        {"activation", ArgumentType::activation},
                                        {"use_bias", ArgumentType::flag}};

Shape infer_dense(const Arguments& arguments, InputShapes inputs) {
  Shape shape = inputs[0];
  shape.back() = arguments.integer("units");
  return shape;
}

std::shared_ptr<Layer> make_dense(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<DenseLayer>(inputs[0].back(), arguments.integer("units"),
                                      activation_of(arguments.text("activation", "none")),
                                      arguments.flag("use_bias", true));
}

// ---- Activation, Dropout

class ActivationLayer : public Layer {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}
  torch::Tensor forward(const Inputs& inputs) override { return activate(inputs[0], activation_); }

 private:
  Activation activation_;
};

constexpr Argument kActivationArguments[] = {{"activation", ArgumentType::activation, true}};

std::shared_ptr<Layer> make_activation(const Arguments& arguments, InputShapes) {
  const Activation activation = activation_of(arguments.text("activation", "none"));
  if (activation == Activation::none) return nullptr;
  return std::make_shared<ActivationLayer>(activation);
}

class DropoutLayer : public Layer {
 public:
  explicit DropoutLayer(double rate) : rate_(rate) {}
  torch::Tensor forward(const Inputs& inputs) override {
    return is_training() ? torch::dropout(inputs[0], rate_, true) : inputs[0];
  }

 private:
  double rate_;
};

constexpr Argument kDropoutArguments[] = {{"rate", ArgumentType::fraction, true}};

std::shared_ptr<Layer> make_dropout(const Arguments& arguments, InputShapes) {
  return std::make_shared<DropoutLayer>(arguments.number("rate", 0));
}

// ---- BatchNormalization (Ioffe and Szegedy, 2015), over the first axis of a sample

class BatchNormalizationLayer : public Layer {
 public:
  BatchNormalizationLayer(std::int64_t channels, double momentum, double epsilon)
      : momentum_(momentum), epsilon_(epsilon) {
    weight_ = register_parameter("weight", torch::ones({channels}));
    bias_ = register_parameter("bias", torch::zeros({channels}));
    mean_ = register_buffer("running_mean", torch::zeros({channels}));
    variance_ = register_buffer("running_var", torch::ones({channels}));
  }

  torch::Tensor forward(const Inputs& inputs) override {
    const torch::Tensor& input = inputs[0];
    // One value has no variance: a last batch of one sample must not spoil the running one.
    const bool uses_batch = is_training() && input.numel() > input.size(1);
    return torch::batch_norm(input, weight_, bias_, mean_, variance_, uses_batch, momentum_,
                             epsilon_, false);
  }

 private:
  torch::Tensor weight_, bias_, mean_, variance_;
  double momentum_, epsilon_;
};

constexpr Argument kBatchNormalizationArguments[] = {{"momentum", ArgumentType::fraction},
                                                     {"epsilon", ArgumentType::number}};

std::shared_ptr<Layer> make_batch_normalization(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<BatchNormalizationLayer>(
      inputs[0].front(), arguments.number("momentum", 0.1), arguments.number("epsilon", 1e-3));
}

// ---- Flatten, Reshape, Tensor

class ReshapeLayer : public Layer {
 public:
  explicit ReshapeLayer(const Shape& shape) : shape_{-1} {
    shape_.insert(shape_.end(), shape.begin(), shape.end());
  }
  torch::Tensor forward(const Inputs& inputs) override {
    shape_[0] = inputs[0].size(0);  // -1 would not do for an empty batch
    return inputs[0].reshape(shape_);
  }

 private:
  std::vector<std::int64_t> shape_;
};

Shape infer_flatten(const Arguments&, InputShapes inputs) { return {elements(inputs[0])}; }

std::shared_ptr<Layer> make_flatten(const Arguments&, InputShapes inputs) {
  if (inputs[0].size() == 1) return nullptr;
  return std::make_shared<ReshapeLayer>(Shape{elements(inputs[0])});
}

constexpr Argument kReshapeArguments[] = {{"shape", ArgumentType::shape, true}};

Shape infer_reshape(const Arguments& arguments, InputShapes inputs) {
  Shape shape = arguments.shape("shape");
  if (elements(shape) != elements(inputs[0]))
    throw_error(ErrorCode::invalid_argument, "{} has {} elements, but {} has {}", to_string(shape),
                elements(shape), to_string(inputs[0]), elements(inputs[0]));
  return shape;
}

std::shared_ptr<Layer> make_reshape(const Arguments& arguments, InputShapes) {
  return std::make_shared<ReshapeLayer>(arguments.shape("shape"));
}

/// The same constant for every sample.
class TensorLayer : public Layer {
 public:
  explicit TensorLayer(torch::Tensor value) { value_ = register_buffer("value", std::move(value)); }
  torch::Tensor forward(const Inputs& inputs) override {
    std::vector<std::int64_t> sizes = value_.sizes().vec();
    sizes[0] = inputs[0].size(0);
    return value_.expand(sizes);
  }

 private:
  torch::Tensor value_;
};

constexpr Argument kTensorArguments[] = {{"shape", ArgumentType::shape, true},
                                         {"value", ArgumentType::numbers, true}};

Shape infer_tensor(const Arguments& arguments, InputShapes) {
  Shape shape = arguments.shape("shape");
  const auto values = static_cast<std::int64_t>(arguments.numbers("value").size());
  if (values != 1 && values != elements(shape))
    throw_error(ErrorCode::invalid_argument,
                "there are {} values for the shape {}, which has {} elements", values,
                to_string(shape), elements(shape));
  return shape;
}

std::shared_ptr<Layer> make_tensor(const Arguments& arguments, InputShapes) {
  Shape shape = arguments.shape("shape");
  shape.insert(shape.begin(), 1);
  const torch::Tensor values = torch::tensor(arguments.numbers("value"), torch::kFloat32);
  return std::make_shared<TensorLayer>(
      values.numel() == 1 ? values.expand({elements(shape)}).reshape(shape).contiguous()
                          : values.reshape(shape));
}

constexpr Argument kConnectArguments[] = {{"sources", ArgumentType::nodes, true}};

}  // namespace

namespace kinds {

const OperationKind identity{Arity::one, {}, same_shape, no_layer};
const OperationKind zero{Arity::several, {}, same_shape, no_layer};
const OperationKind connect{Arity::several, kConnectArguments, same_shape, no_layer};
const OperationKind tensor{Arity::none, kTensorArguments, infer_tensor, make_tensor};
const OperationKind dense{Arity::one, kDenseArguments, infer_dense, make_dense};
const OperationKind activation{Arity::one, kActivationArguments, same_shape, make_activation};
const OperationKind dropout{Arity::one, kDropoutArguments, same_shape, make_dropout};
const OperationKind batch_normalization{Arity::one, kBatchNormalizationArguments, same_shape,
                                        make_batch_normalization};
const OperationKind flatten{Arity::one, {}, infer_flatten, make_flatten};
const OperationKind reshape{Arity::one, kReshapeArguments, infer_reshape, make_reshape};

}  // namespace kinds
}  // namespace kolo::nas

// Convolutions. Channels first: signals (C, L), images (C, H, W).
#include "base/errors.h"
#include "nas/graph/activations.h"
#include "nas/graph/initializers.h"
#include "nas/graph/kinds.h"
#include "nas/graph/window.h"

namespace kolo::nas {
namespace {

using InputShapes = std::span<const Shape>;

constexpr Argument kConvolutionArguments[] = {
    {"filters", ArgumentType::count, true},   {"kernel_size", ArgumentType::counts, true},
    {"activation", ArgumentType::activation}, {"strides", ArgumentType::counts},
    {"padding", ArgumentType::padding},       {"use_bias", ArgumentType::flag},
};

template <std::size_t dimensions>
Window convolution_window(const Arguments& arguments, const Shape& input) {
  need_rank(input, dimensions + 1,
            dimensions == 1 ? "(channels, length)" : "(channels, height, width)");
  const std::vector<std::int64_t> ones(dimensions, 1);
  return {input, arguments.counts("kernel_size", dimensions, ones),
          arguments.counts("strides", dimensions, ones),
          arguments.text("padding", "same") == "same"};
}

template <std::size_t dimensions>
Shape infer_convolution(const Arguments& arguments, InputShapes inputs) {
  Shape shape = convolution_window<dimensions>(arguments, inputs[0]).places;
  shape.insert(shape.begin(), arguments.integer("filters"));
  return shape;
}

/// `groups` = channels for the first half of a separable convolution.
torch::Tensor convolve(const torch::Tensor& input, const torch::Tensor& weight,
                       const torch::Tensor& bias, const Window& window, std::int64_t groups = 1) {
  const bool symmetric = window.symmetric();
  const torch::Tensor padded =
      symmetric ? input : torch::constant_pad_nd(input, window.padding(), 0);
  const std::vector<std::int64_t> none(window.size.size(), 0);
  const auto& padding = symmetric ? window.before : none;
  if (window.size.size() == 1)
    return torch::conv1d(padded, weight, bias, window.strides, padding, 1, groups);
  return torch::conv2d(padded, weight, bias, window.strides, padding, 1, groups);
}

Shape weight_shape(std::int64_t filters, std::int64_t channels, const Window& window) {
  Shape shape{filters, channels};
  shape.insert(shape.end(), window.size.begin(), window.size.end());
  return shape;
}

class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(std::int64_t channels, std::int64_t filters, Window window,
                   Activation activation, bool use_bias)
      : window_(std::move(window)), activation_(activation) {
    const std::int64_t field = elements(window_.size);
    weight_ = register_parameter("weight", glorot_uniform(weight_shape(filters, channels, window_),
                                                          channels * field, filters * field));
    if (use_bias) bias_ = register_parameter("bias", torch::zeros({filters}));
  }
  torch::Tensor forward(const Inputs& inputs) override {
    return activate(convolve(inputs[0], weight_, bias_, window_), activation_);
  }

 private:
  Window window_;
  torch::Tensor weight_, bias_;
  Activation activation_;
};

template <std::size_t dimensions>
std::shared_ptr<Layer> make(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<ConvolutionLayer>(inputs[0][0], arguments.integer("filters"),
                                            convolution_window<dimensions>(arguments, inputs[0]),
                                            activation_of(arguments.text("activation", "none")),
                                            arguments.flag("use_bias", true));
}

/// Chollet, "Xception: deep learning with depthwise separable convolutions", 2017: each channel by
/// a kernel of its own, then all channels at each place.
class SeparableConvolutionLayer : public Layer {
 public:
  SeparableConvolutionLayer(std::int64_t channels, std::int64_t filters, Window window,
                            Activation activation, bool use_bias)
      : window_(std::move(window)), channels_(channels), activation_(activation) {
    const std::int64_t field = elements(window_.size);
    depthwise_ = register_parameter(
        "depthwise_weight",
        glorot_uniform(weight_shape(channels, 1, window_), channels * field, field));
    pointwise_ = register_parameter("pointwise_weight",
                                    glorot_uniform({filters, channels, 1, 1}, channels, filters));
    if (use_bias) bias_ = register_parameter("bias", torch::zeros({filters}));
  }
  torch::Tensor forward(const Inputs& inputs) override {
    const torch::Tensor apart = convolve(inputs[0], depthwise_, {}, window_, channels_);
    return activate(torch::conv2d(apart, pointwise_, bias_), activation_);
  }

 private:
  Window window_;
  std::int64_t channels_;
  torch::Tensor depthwise_, pointwise_, bias_;
  Activation activation_;
};

std::shared_ptr<Layer> make_separable(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<SeparableConvolutionLayer>(
      inputs[0][0], arguments.integer("filters"), convolution_window<2>(arguments, inputs[0]),
      activation_of(arguments.text("activation", "none")), arguments.flag("use_bias", true));
}

}  // namespace

namespace kinds {

const OperationKind conv1d{Arity::one, kConvolutionArguments, infer_convolution<1>, make<1>};
const OperationKind conv2d{Arity::one, kConvolutionArguments, infer_convolution<2>, make<2>};
const OperationKind separable_conv2d{Arity::one, kConvolutionArguments, infer_convolution<2>,
                                     make_separable};

}  // namespace kinds
}  // namespace kolo::nas

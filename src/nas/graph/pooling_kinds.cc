// Pools. Channels first: signals (C, L), images (C, H, W). Padded places count neither for the
// largest nor for the mean.
#include <limits>

#include "base/errors.h"
#include "nas/graph/kinds.h"
#include "nas/graph/window.h"

namespace kolo::nas {
namespace {

using InputShapes = std::span<const Shape>;

constexpr Argument kPoolingArguments[] = {{"pool_size", ArgumentType::counts, true},
                                          {"strides", ArgumentType::counts},
                                          {"padding", ArgumentType::padding}};

template <std::size_t dimensions>
Window pooling_window(const Arguments& arguments, const Shape& input) {
  need_rank(input, dimensions + 1,
            dimensions == 1 ? "(channels, length)" : "(channels, height, width)");
  const auto size = arguments.counts("pool_size", dimensions, {});
  return {input, size, arguments.counts("strides", dimensions, size),
          arguments.text("padding", "valid") == "same"};
}

template <std::size_t dimensions>
Shape infer_pooling(const Arguments& arguments, InputShapes inputs) {
  Shape shape = pooling_window<dimensions>(arguments, inputs[0]).places;
  shape.insert(shape.begin(), inputs[0][0]);
  return shape;
}

/// libtorch pads by half a window at the most; more is there in very small tensors only.
bool padded_by_libtorch(const Window& window) {
  for (std::size_t axis = 0; axis < window.size.size(); ++axis)
    if (window.before[axis] > window.size[axis] / 2) return false;
  return window.symmetric();
}

class MaxPoolingLayer : public Layer {
 public:
  explicit MaxPoolingLayer(Window window)
      : window_(std::move(window)), none_(window_.size.size(), 0) {}

  torch::Tensor forward(const Inputs& inputs) override {
    const bool plain = padded_by_libtorch(window_);
    const torch::Tensor padded =
        plain ? inputs[0]
              : torch::constant_pad_nd(inputs[0], window_.padding(),
                                       -std::numeric_limits<double>::infinity());
    const auto& padding = plain ? window_.before : none_;
    return none_.size() == 1 ? torch::max_pool1d(padded, window_.size, window_.strides, padding)
                             : torch::max_pool2d(padded, window_.size, window_.strides, padding);
  }

 private:
  Window window_;
  std::vector<std::int64_t> none_;
};

class AveragePoolingLayer : public Layer {
 public:
  AveragePoolingLayer(Window window, const Shape& input)
      : window_(std::move(window)), none_(window_.size.size(), 0) {
    if (padded_by_libtorch(window_)) return;
    // What part of each window lies inside.
    Shape one_channel = input;
    one_channel[0] = 1;
    one_channel.insert(one_channel.begin(), 1);
    inside_ = register_buffer("inside", pad_and_pool(torch::ones(one_channel)));
  }

  torch::Tensor forward(const Inputs& inputs) override {
    if (inside_.defined()) return pad_and_pool(inputs[0]) / inside_;
    return pool(inputs[0], window_.before, false);
  }

 private:
  [[nodiscard]] torch::Tensor pool(const torch::Tensor& input,
                                   const std::vector<std::int64_t>& padding,
                                   bool counts_padding) const {
    return none_.size() == 1 ? torch::avg_pool1d(input, window_.size, window_.strides, padding,
                                                 false, counts_padding)
                             : torch::avg_pool2d(input, window_.size, window_.strides, padding,
                                                 false, counts_padding);
  }
  [[nodiscard]] torch::Tensor pad_and_pool(const torch::Tensor& input) const {
    return pool(torch::constant_pad_nd(input, window_.padding(), 0), none_, true);
  }

  Window window_;
  std::vector<std::int64_t> none_;
  torch::Tensor inside_;
};

template <std::size_t dimensions>
std::shared_ptr<Layer> make_max(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<MaxPoolingLayer>(pooling_window<dimensions>(arguments, inputs[0]));
}

template <std::size_t dimensions>
std::shared_ptr<Layer> make_average(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<AveragePoolingLayer>(pooling_window<dimensions>(arguments, inputs[0]),
                                               inputs[0]);
}

// ---- GlobalAveragePooling

Shape infer_global(const Arguments&, InputShapes inputs) {
  if (inputs[0].size() < 2)
    throw_error(ErrorCode::invalid_argument,
                "needs (channels, length) or (channels, height, width), got {}",
                to_string(inputs[0]));
  return {inputs[0][0]};
}

class GlobalAveragePoolingLayer : public Layer {
 public:
  torch::Tensor forward(const Inputs& inputs) override { return inputs[0].flatten(2).mean(2); }
};

std::shared_ptr<Layer> make_global(const Arguments&, InputShapes) {
  return std::make_shared<GlobalAveragePoolingLayer>();
}

}  // namespace

namespace kinds {

const OperationKind max_pooling1d{Arity::one, kPoolingArguments, infer_pooling<1>, make_max<1>};
const OperationKind max_pooling2d{Arity::one, kPoolingArguments, infer_pooling<2>, make_max<2>};
const OperationKind average_pooling1d{Arity::one, kPoolingArguments, infer_pooling<1>,
                                      make_average<1>};
const OperationKind average_pooling2d{Arity::one, kPoolingArguments, infer_pooling<2>,
                                      make_average<2>};
const OperationKind global_average_pooling{Arity::one, {}, infer_global, make_global};

}  // namespace kinds
}  // namespace kolo::nas

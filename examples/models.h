// The networks that examples and benches train: an MLP, a stack of many small layers, ResNet-18, a
// VGG-like net with most of its weights in two layers, and a small transformer.
//
//   models::Model model = models::make("resnet18");
//   torch::Tensor loss = model.loss(model.make_batch(32, seed));
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace models {

namespace nn = torch::nn;
using torch::Tensor;

/// Fully connected layers with ReLU between them; inputs of any shape are flattened.
struct MlpImpl : nn::Module {
  explicit MlpImpl(const std::vector<int64_t>& widths) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back(nn::Linear(widths[i], widths[i + 1]));
      register_module("fc" + std::to_string(i), layers.back());
    }
  }
  Tensor forward(Tensor x) {
    x = x.flatten(1);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = torch::relu(x);
    }
    return x;
  }
  std::vector<nn::Linear> layers;
};
TORCH_MODULE(Mlp);

/// Two 3x3 convolutions around which the input is carried (He et al., "Deep residual learning for
/// image recognition", 2015, figure 5 left).
struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)),
        conv2(nn::Conv2dOptions(out, out, 3).padding(1).bias(false)),
        norm1(out),
        norm2(out) {
    register_module("conv1", conv1);
    register_module("bn1", norm1);
    register_module("conv2", conv2);
    register_module("bn2", norm2);
    if (stride != 1 || in != out) {
      shortcut->push_back(nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)));
      shortcut->push_back(nn::BatchNorm2d(out));
      register_module("downsample", shortcut);
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor y = torch::relu(norm1(conv1(x)));
    y = norm2(conv2(y));
    return torch::relu(y + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d norm1, norm2;
  nn::Sequential shortcut;
};
TORCH_MODULE(ResidualBlock);

/// 62 tensors, 11.2 million parameters. `small_images`: a 3x3 stem without pooling, for 32x32.
struct ResNet18Impl : nn::Module {
  explicit ResNet18Impl(int64_t classes = 10, bool small_images = true)
      : small(small_images),
        stem(small_images ? nn::Conv2dOptions(3, 64, 3).padding(1).bias(false)
                          : nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)),
        norm(64),
        classifier(512, classes) {
    register_module("conv1", stem);
    register_module("bn1", norm);
    int64_t in = 64;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const int64_t out = int64_t{64} << stage;
      blocks->push_back(ResidualBlock(in, out, stage == 0 ? 1 : 2));
      blocks->push_back(ResidualBlock(out, out, 1));
      in = out;
    }
    register_module("blocks", blocks);
    register_module("fc", classifier);
  }
  Tensor forward(Tensor x) {
    x = torch::relu(norm(stem(x)));
    if (!small) x = torch::max_pool2d(x, 3, 2, 1);
    x = blocks->forward(x);
    return classifier(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
  bool small;
  nn::Conv2d stem;
  nn::BatchNorm2d norm;
  nn::Sequential blocks;
  nn::Linear classifier;
};
TORCH_MODULE(ResNet18);

/// After Simonyan and Zisserman, "Very deep convolutional networks", 2014, for 32x32 images: little
/// to compute for its 15 million parameters (60 MB), two thirds of which are in one layer.
struct VggImpl : nn::Module {
  explicit VggImpl(int64_t classes = 10) : fc1(2048, 4096), fc2(4096, 512), fc3(512, classes) {
    int64_t in = 3;
    for (int64_t out : {64, 128, 256, 256, 512, 512}) {
      convs.push_back(nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)));
      register_module("conv" + std::to_string(convs.size()), convs.back());
      in = out;
    }
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("fc3", fc3);
  }
  Tensor forward(Tensor x) {
    for (std::size_t i = 0; i < convs.size(); ++i) {
      x = torch::relu(convs[i](x));
      if (i != 2 && i != 4) x = torch::max_pool2d(x, 2);
    }
    x = torch::relu(fc1(x.flatten(1)));
    return fc3(torch::relu(fc2(x)));
  }
  std::vector<nn::Conv2d> convs;
  nn::Linear fc1, fc2, fc3;
};
TORCH_MODULE(Vgg);

struct TransformerShape {
  int64_t symbols = 96, width = 128, heads = 4, layers = 4, context = 64;
};

/// Predicts the next symbol of a text (Vaswani et al., "Attention is all you need", 2017, the
/// decoder without its encoder; layer norm before each part).
struct TransformerImpl : nn::Module {
  explicit TransformerImpl(TransformerShape the_shape = {})
      : shape(the_shape),
        symbols(shape.symbols, shape.width),
        places(shape.context, shape.width),
        last_norm(nn::LayerNormOptions({shape.width})),
        head(nn::LinearOptions(shape.width, shape.symbols).bias(false)) {
    register_module("symbols", symbols);
    register_module("places", places);
    for (int64_t i = 0; i < shape.layers; ++i) blocks->push_back(Block(shape.width, shape.heads));
    register_module("blocks", blocks);
    register_module("norm", last_norm);
    register_module("head", head);
  }
  /// batch x length numbers of symbols -> batch x length x symbols scores.
  Tensor forward(const Tensor& text) {
    Tensor x = symbols(text) + places(torch::arange(text.size(1)));
    return head(last_norm(blocks->forward(x)));
  }

  struct BlockImpl : nn::Module {
    BlockImpl(int64_t width, int64_t the_heads)
        : heads(the_heads),
          norm1(nn::LayerNormOptions({width})),
          norm2(nn::LayerNormOptions({width})),
          qkv(width, 3 * width),
          out(width, width),
          wide(width, 4 * width),
          narrow(4 * width, width) {
      register_module("norm1", norm1);
      register_module("qkv", qkv);
      register_module("out", out);
      register_module("norm2", norm2);
      register_module("wide", wide);
      register_module("narrow", narrow);
    }
    Tensor forward(Tensor x) {
      x = x + attend(norm1(x));
      return x + narrow(torch::gelu(wide(norm2(x))));
    }
    Tensor attend(const Tensor& x) {
      const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
      auto parts = qkv(x).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
      Tensor scores = torch::matmul(parts[0], parts[1].transpose(-2, -1)) /
                      std::sqrt(static_cast<double>(width) / static_cast<double>(heads));
      // Nobody looks ahead.
      Tensor ahead = torch::ones({length, length}, torch::kBool).triu(1);
      scores = scores.masked_fill(ahead, -1e9).softmax(-1);
      return out(torch::matmul(scores, parts[2]).transpose(1, 2).reshape({batch, length, width}));
    }
    int64_t heads;
    nn::LayerNorm norm1, norm2;
    nn::Linear qkv, out, wide, narrow;
  };
  TORCH_MODULE(Block);

  TransformerShape shape;
  nn::Embedding symbols, places;
  nn::Sequential blocks;
  nn::LayerNorm last_norm;
  nn::Linear head;
};
TORCH_MODULE(Transformer);

using Batch = std::pair<Tensor, Tensor>;  // inputs and targets

/// A network with made-up data of the right shape and its loss.
struct Model {
  std::shared_ptr<nn::Module> module;
  std::function<Tensor(const Batch&)> loss;
  std::function<Batch(int64_t size, uint64_t seed)> make_batch;
};

inline torch::Generator generator(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

/// `holder` classifies images of `image` (channels, height, width) into ten classes.
template <class Holder>
Model classifier(Holder holder, std::vector<int64_t> image) {
  return {holder.ptr(),
          [holder](const Batch& batch) mutable {
            return nn::functional::cross_entropy(holder->forward(batch.first), batch.second);
          },
          [image](int64_t size, uint64_t seed) {
            auto random = generator(seed);
            std::vector<int64_t> shape{size};
            shape.insert(shape.end(), image.begin(), image.end());
            return Batch{torch::randn(shape, random, torch::TensorOptions()),
                         torch::randint(0, 10, {size}, random, torch::kLong)};
          }};
}

inline Model language_model(TransformerShape shape) {
  Transformer net(shape);
  return {net.ptr(),
          [net, shape](const Batch& batch) mutable {
            return nn::functional::cross_entropy(
                net->forward(batch.first).view({-1, shape.symbols}), batch.second.flatten());
          },
          [shape](int64_t size, uint64_t seed) {
            auto random = generator(seed);
            Tensor text = torch::randint(0, shape.symbols, {size, shape.context + 1}, random,
                                         torch::TensorOptions(torch::kLong));
            return Batch{text.slice(1, 0, shape.context), text.slice(1, 1)};
          }};
}

inline const std::vector<std::string>& names() {
  static const std::vector<std::string> all{"mlp", "mlp200", "resnet18", "vgg", "transformer"};
  return all;
}

/// mlp: 784-512-512-10. mlp200: a hundred layers of 64, so two hundred small tensors.
inline Model make(const std::string& name) {
  if (name == "mlp") return classifier(Mlp(std::vector<int64_t>{784, 512, 512, 10}), {1, 28, 28});
  if (name == "mlp200") {
    std::vector<int64_t> widths(100, 64);
    widths.push_back(10);
    return classifier(Mlp(widths), {64});
  }
  if (name == "resnet18") return classifier(ResNet18(), {3, 32, 32});
  if (name == "vgg") return classifier(Vgg(), {3, 32, 32});
  if (name == "transformer") return language_model({});
  std::string known;
  for (const std::string& each : names()) known += (known.empty() ? "" : ", ") + each;
  throw std::invalid_argument("model '" + name + "' is unknown; known: " + known);
}

}  // namespace models

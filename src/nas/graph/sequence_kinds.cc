// Operations on sequences: LSTM over (time, features), Embedding of (time) whole numbers.
#include "base/errors.h"
#include "nas/graph/initializers.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

using InputShapes = std::span<const Shape>;

// ---- LSTM (Hochreiter and Schmidhuber, 1997), gates in the order input, forget, cell, output

constexpr Argument kLstmArguments[] = {{"units", ArgumentType::count, true},
                                       {"return_sequences", ArgumentType::flag}};

Shape infer_lstm(const Arguments& arguments, InputShapes inputs) {
  need_rank(inputs[0], 2, "(time, features)");
  const std::int64_t units = arguments.integer("units");
  return arguments.flag("return_sequences", false) ? Shape{inputs[0][0], units} : Shape{units};
}

class LstmLayer : public Layer {
 public:
  LstmLayer(std::int64_t features, std::int64_t units, bool all_steps)
      : units_(units), all_steps_(all_steps) {
    input_ =
        register_parameter("weight_ih", glorot_uniform({4 * units, features}, features, 4 * units));
    torch::Tensor recurrent = torch::empty({4 * units, units});
    torch::nn::init::orthogonal_(recurrent);
    recurrent_ = register_parameter("weight_hh", recurrent);
    // Keras' unit_forget_bias: a cell that keeps what it has at the beginning learns faster
    // (Jozefowicz et al., 2015). libtorch's second bias would only repeat the first.
    torch::Tensor bias = torch::zeros({4 * units});
    bias.narrow(0, units, units).fill_(1);
    bias_ = register_parameter("bias", bias);
    no_bias_ = register_buffer("no_bias", torch::zeros({4 * units}));
  }

  torch::Tensor forward(const Inputs& inputs) override {
    const torch::Tensor& input = inputs[0];
    const torch::Tensor start = torch::zeros({1, input.size(0), units_}, input.options());
    const auto [steps, hidden, cell] =
        torch::lstm(input, {start, start}, {input_, recurrent_, bias_, no_bias_}, true, 1, 0.0,
                    is_training(), false, true);
    (void)cell;
    return all_steps_ ? steps : hidden.squeeze(0);
  }

 private:
  std::int64_t units_;
  bool all_steps_;
  torch::Tensor input_, recurrent_, bias_, no_bias_;
};

std::shared_ptr<Layer> make_lstm(const Arguments& arguments, InputShapes inputs) {
  return std::make_shared<LstmLayer>(inputs[0][1], arguments.integer("units"),
                                     arguments.flag("return_sequences", false));
}

// ---- Embedding

constexpr Argument kEmbeddingArguments[] = {{"input_dim", ArgumentType::count, true},
                                            {"output_dim", ArgumentType::count, true}};

Shape infer_embedding(const Arguments& arguments, InputShapes inputs) {
  need_rank(inputs[0], 1, "(time)");
  return {inputs[0][0], arguments.integer("output_dim")};
}

class EmbeddingLayer : public Layer {
 public:
  EmbeddingLayer(std::int64_t input_dim, std::int64_t output_dim) {
    weight_ = register_parameter("weight", uniform_weights({input_dim, output_dim}, 0.05));
  }
  /// Numbers may come as floating point, as data sets have them.
  torch::Tensor forward(const Inputs& inputs) override {
    return torch::embedding(weight_, inputs[0].to(torch::kLong));
  }

 private:
  torch::Tensor weight_;
};

std::shared_ptr<Layer> make_embedding(const Arguments& arguments, InputShapes) {
  return std::make_shared<EmbeddingLayer>(arguments.integer("input_dim"),
                                          arguments.integer("output_dim"));
}

}  // namespace

namespace kinds {

const OperationKind lstm{Arity::one, kLstmArguments, infer_lstm, make_lstm};
const OperationKind embedding{Arity::one, kEmbeddingArguments, infer_embedding, make_embedding};

}  // namespace kinds
}  // namespace kolo::nas

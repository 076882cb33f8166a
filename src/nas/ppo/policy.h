// The network of the policy and of its value function: an LSTM that walks over the choices of an
// architecture, one per time step, with a linear layer on its state.
//
// Hochreiter and Schmidhuber, "Long short-term memory" (1997); with layer norm as in Ba, Kiros and
// Hinton, "Layer normalization" (2016): what comes from the input and what comes from the state are
// normalised each for itself, and so is the cell before its tanh.
//
// The input of a step is the pair (step, last action). Each of the two picks a row of a table, and
// the rows are added: that is a linear layer on one-hot codes, at the cost of an addition, and the
// network need not learn to read numbers.
//
// Everything is in one flat vector of parameters, so that averaging, clipping, hashing and saving
// are loops over it. Gradients are written by hand (tests check them by finite differences), for
// float and double. Cost of n episodes of s steps with u units: 8 s n u² multiplications forward,
// twice that backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/random.h"
#include "nas/ppo/kernels.h"

namespace kolo::nas {

struct NetworkShape {
  std::size_t units = 128;
  bool layer_norm = true;
  std::size_t steps = 1;
  std::size_t actions = 1;  ///< the most that a step has
  std::size_t outputs = 1;
};

/// The names of networks: ppo_lstm_32 … ppo_lnlstm_128.
std::vector<std::string_view> network_names();
/// Sets units and layer norm. Throws not_found, listing the names.
NetworkShape network_shape(std::string_view name);

template <class T>
class Network {
 public:
  explicit Network(const NetworkShape& shape);

  [[nodiscard]] const NetworkShape& shape() const { return shape_; }
  [[nodiscard]] std::size_t parameters() const { return total_; }
  /// Outputs of a step are this far apart; those behind shape().outputs are zero.
  [[nodiscard]] std::size_t output_stride() const { return stride_; }

  /// Orthogonal matrices (Saxe, McClelland and Ganguli 2014), that of the outputs times `gain`.
  void initialize(Random& random, double gain, std::span<T> parameters) const;

  /// What forward() leaves for backward(). May be used again; its memory is kept.
  struct Record {
    std::size_t episodes = 0;
    std::vector<std::uint32_t> last_actions;  // of every (step, episode)
    std::vector<T> packed_recurrent;
    std::vector<T> input, input_scale;
    std::vector<T> recurrent, recurrent_scale, gates, cell, cell_normal, cell_scale, cell_tanh;
    std::vector<T> state;
    // Of the gradient, which also takes the place of gates and recurrent.
    std::vector<T> packed_transposed, dstate, dcell, scratch;
  };

  /// `actions` and `outputs` have one row per (step, episode), the step first.
  void forward(std::span<const T> parameters, std::size_t episodes,
               std::span<const std::uint32_t> actions, Record& record,
               std::vector<T>& outputs) const;

  /// Uses the record up. The gradient of a sum over `outputs` weighted by `doutputs`, which must be
  /// zero in the padding.
  void backward(std::span<const T> parameters, Record& record, std::span<const T> doutputs,
                std::span<T> gradient) const;

  /// One episode, a step at a time.
  class Walk {
   public:
    Walk(const Network& network, std::span<const T> parameters);
    /// The outputs of the next step, after `last_action` (which the first step ignores).
    std::span<const T> next(std::uint32_t last_action);

   private:
    const Network& network_;
    std::span<const T> parameters_;
    Record record_;
    std::vector<T> outputs_;
    std::size_t step_ = 0;
  };

 private:
  /// Offsets of the parts in the vector of parameters.
  struct Parts {
    std::size_t steps, actions, recurrent, bias;
    std::size_t input_gain, recurrent_gain, cell_gain, cell_bias;  // with layer norm
    std::size_t output, output_bias;
  };

  void resize(Record& record, std::size_t rows, std::size_t episodes) const;
  void read_inputs(std::span<const T> parameters, Record& record, std::size_t first_step,
                   std::size_t rows) const;
  [[nodiscard]] LstmStep<T> lstm_step(std::span<const T> parameters, Record& record,
                                      std::size_t step) const;
  void run_step(std::span<const T> parameters, Record& record, std::size_t step,
                const T* state_before, const T* cell_before) const;
  void input_gradient(std::span<const T> parameters, Record& record, std::span<T> gradient) const;

  NetworkShape shape_;
  std::size_t stride_, total_ = 0;
  Parts at_{};
};

extern template class Network<float>;
extern template class Network<double>;

}  // namespace kolo::nas

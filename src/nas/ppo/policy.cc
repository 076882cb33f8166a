// Row r of all arrays of a Record belongs to step r / episodes of episode r % episodes, so that one
// step of all episodes is a contiguous block. forward() computes what comes from the inputs for all
// steps in one go; only the recurrent product must go step by step. backward() keeps the same
// order: first the output layer for all rows, then back through time, then the weights of the
// recurrence in one product over all steps.
//
// Matrices are packed into panels of kPadding columns before they are multiplied many times (see
// Layout).
#include "nas/ppo/policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/registry.h"

namespace kolo::nas {
namespace {

struct NamedShape {
  std::size_t units;
  bool layer_norm;
};
constexpr Entry<NamedShape> kNetworks[] = {
    {"ppo_lstm_32", "an LSTM of 32 units", {32, false}},
    {"ppo_lstm_64", "an LSTM of 64 units", {64, false}},
    {"ppo_lstm_128", "an LSTM of 128 units", {128, false}},
    {"ppo_lnlstm_32", "an LSTM of 32 units with layer norm", {32, true}},
    {"ppo_lnlstm_64", "an LSTM of 64 units with layer norm", {64, true}},
    {"ppo_lnlstm_128", "an LSTM of 128 units with layer norm", {128, true}},
};
constexpr Registry<NamedShape> kNetworkTable{"network", kNetworks};

/// Random rows, or columns where these are fewer, made orthogonal and of length `gain` (modified
/// Gram-Schmidt). Only the first `columns` of each row of `stride` are set.
template <class T>
void orthogonal(Random& random, std::size_t rows, std::size_t columns, std::size_t stride,
                double gain, T* matrix) {
  const std::size_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> vectors(count * length);
  for (double& x : vectors) x = random.normal();
  for (std::size_t i = 0; i < count; ++i) {
    double* mine = vectors.data() + i * length;
    // Twice is enough: what rounding leaves of the others goes in the second round.
    for (int round = 0; round < 2; ++round)
      for (std::size_t k = 0; k < i; ++k) {
        const double* other = vectors.data() + k * length;
        double along = 0;
        for (std::size_t j = 0; j < length; ++j) along += mine[j] * other[j];
        for (std::size_t j = 0; j < length; ++j) mine[j] -= along * other[j];
      }
    double square = 0;
    for (std::size_t j = 0; j < length; ++j) square += mine[j] * mine[j];
    for (std::size_t j = 0; j < length; ++j) mine[j] /= std::sqrt(square);
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      matrix[r * stride + c] = static_cast<T>(
          gain * (rows <= columns ? vectors[r * length + c] : vectors[c * length + r]));
}

/// Row-major rows × columns into panels (see Layout).
template <class T>
void pack(const T* matrix, std::size_t rows, std::size_t columns, std::vector<T>& packed) {
  packed.resize(rows * columns);
  T* to = packed.data();
  for (std::size_t panel = 0; panel < columns; panel += kPadding)
    for (std::size_t r = 0; r < rows; ++r, to += kPadding)
      std::copy_n(matrix + r * columns + panel, kPadding, to);
}

/// The transpose of rows × columns into panels, in blocks that fit into the nearest cache.
template <class T>
void pack_transposed(const T* matrix, std::size_t rows, std::size_t columns,
                     std::vector<T>& packed) {
  constexpr std::size_t kBlock = 16;
  packed.resize(rows * columns);
  for (std::size_t panel = 0; panel < rows; panel += kPadding)
    for (std::size_t block = 0; block < columns; block += kBlock) {
      T* to = packed.data() + panel * columns + block * kPadding;
      for (std::size_t r = 0; r < kPadding; ++r)
        for (std::size_t c = 0; c < kBlock; ++c)
          to[c * kPadding + r] = matrix[(panel + r) * columns + block + c];
    }
}

template <class T>
void add_rows(std::size_t rows, std::size_t width, const T* values, T* sum) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < width; ++j) sum[j] += values[r * width + j];
}

}  // namespace

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  for (const auto& entry : kNetworkTable.entries()) names.push_back(entry.name);
  return names;
}

NetworkShape network_shape(std::string_view name) {
  const NamedShape found = kNetworkTable.at(name).make;
  NetworkShape shape;
  shape.units = found.units;
  shape.layer_norm = found.layer_norm;
  return shape;
}

template <class T>
Network<T>::Network(const NetworkShape& shape) : shape_(shape), stride_(padded(shape.outputs)) {
  const auto take = [&](std::size_t count) {
    const std::size_t place = total_;
    total_ += count;
    return place;
  };
  const std::size_t units = shape.units, gates = 4 * units;
  at_.steps = take(shape.steps * gates);
  at_.actions = take(shape.actions * gates);
  at_.recurrent = take(units * gates);
  at_.bias = take(gates);
  if (shape.layer_norm) {
    at_.input_gain = take(gates);
    at_.recurrent_gain = take(gates);
    at_.cell_gain = take(units);
    at_.cell_bias = take(units);
  }
  at_.output = take(units * stride_);
  at_.output_bias = take(stride_);
}

template <class T>
void Network<T>::initialize(Random& random, double gain, std::span<T> parameters) const {
  std::fill(parameters.begin(), parameters.end(), T(0));
  T* p = parameters.data();
  const std::size_t units = shape_.units, gates = 4 * units;
  orthogonal(random, shape_.steps, gates, gates, 1, p + at_.steps);
  orthogonal(random, shape_.actions, gates, gates, 1, p + at_.actions);
  orthogonal(random, units, gates, gates, 1, p + at_.recurrent);
  if (shape_.layer_norm) {
    std::fill_n(p + at_.input_gain, gates, T(1));
    std::fill_n(p + at_.recurrent_gain, gates, T(1));
    std::fill_n(p + at_.cell_gain, units, T(1));
  }
  orthogonal(random, units, shape_.outputs, stride_, gain, p + at_.output);
}

template <class T>
void Network<T>::resize(Record& record, std::size_t rows, std::size_t episodes) const {
  const std::size_t units = shape_.units, gates = 4 * units;
  record.episodes = episodes;
  record.last_actions.resize(rows);
  for (auto* part : {&record.input, &record.recurrent, &record.gates}) part->resize(rows * gates);
  for (auto* part : {&record.cell, &record.cell_normal, &record.cell_tanh, &record.state})
    part->resize(rows * units);
  for (auto* part : {&record.input_scale, &record.recurrent_scale, &record.cell_scale})
    part->resize(rows);
}

/// The part of the gates that comes from the input, for all rows at once.
template <class T>
void Network<T>::read_inputs(std::span<const T> parameters, Record& record, std::size_t first_step,
                             std::size_t rows) const {
  const std::size_t gates = 4 * shape_.units;
  const T* p = parameters.data();
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t step = first_step + row / record.episodes;
    const T* of_step = p + at_.steps + step * gates;
    T* sum = record.input.data() + row * gates;
    if (step == 0) {  // nothing was done before
      std::copy_n(of_step, gates, sum);
      continue;
    }
    const T* of_action = p + at_.actions + record.last_actions[row] * gates;
    for (std::size_t j = 0; j < gates; ++j) sum[j] = of_step[j] + of_action[j];
  }
  if (shape_.layer_norm)
    kernels<T>().normalize(rows, gates, record.input.data(), record.input_scale.data());
}

template <class T>
LstmStep<T> Network<T>::lstm_step(std::span<const T> parameters, Record& record,
                                  std::size_t step) const {
  const std::size_t units = shape_.units, gates = 4 * units, row = step * record.episodes;
  const T* p = parameters.data();
  LstmStep<T> s;
  s.rows = record.episodes;
  s.units = units;
  s.layer_norm = shape_.layer_norm;
  s.bias = p + at_.bias;
  s.input_gain = p + at_.input_gain;
  s.recurrent_gain = p + at_.recurrent_gain;
  s.cell_gain = p + at_.cell_gain;
  s.cell_bias = p + at_.cell_bias;
  s.input = record.input.data() + row * gates;
  s.recurrent = record.recurrent.data() + row * gates;
  s.recurrent_scale = record.recurrent_scale.data() + row;
  s.gates = record.gates.data() + row * gates;
  s.cell = record.cell.data() + row * units;
  s.cell_normal = record.cell_normal.data() + row * units;
  s.cell_scale = record.cell_scale.data() + row;
  s.cell_tanh = record.cell_tanh.data() + row * units;
  s.state = record.state.data() + row * units;
  return s;
}

template <class T>
void Network<T>::run_step(std::span<const T> parameters, Record& record, std::size_t step,
                          const T* state_before, const T* cell_before) const {
  const std::size_t units = shape_.units, gates = 4 * units;
  LstmStep<T> s = lstm_step(parameters, record, step);
  s.cell_before = cell_before;
  if (state_before == nullptr)
    std::fill_n(s.recurrent, s.rows * gates, T(0));
  else
    kernels<T>().multiply(s.rows, gates, units, state_before, units, 1,
                          record.packed_recurrent.data(), Layout::packed(units), s.recurrent, gates,
                          false);
  kernels<T>().step(s);
}

template <class T>
void Network<T>::forward(std::span<const T> parameters, std::size_t episodes,
                         std::span<const std::uint32_t> actions, Record& record,
                         std::vector<T>& outputs) const {
  const std::size_t rows = shape_.steps * episodes, units = shape_.units;
  resize(record, rows, episodes);
  for (std::size_t row = episodes; row < rows; ++row)
    record.last_actions[row] = actions[row - episodes];
  read_inputs(parameters, record, 0, rows);
  pack(parameters.data() + at_.recurrent, units, 4 * units, record.packed_recurrent);
  const std::vector<T> nothing(episodes * units, T(0));
  for (std::size_t step = 0; step < shape_.steps; ++step) {
    const std::size_t before = (step - 1) * episodes * units;
    run_step(parameters, record, step, step == 0 ? nullptr : record.state.data() + before,
             step == 0 ? nothing.data() : record.cell.data() + before);
  }
  outputs.resize(rows * stride_);
  const T* bias = parameters.data() + at_.output_bias;
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(bias, stride_, outputs.data() + row * stride_);
  kernels<T>().multiply(rows, stride_, units, record.state.data(), units, 1,
                        parameters.data() + at_.output, Layout::plain(stride_), outputs.data(),
                        stride_, true);
}

template <class T>
void Network<T>::backward(std::span<const T> parameters, Record& record,
                          std::span<const T> doutputs, std::span<T> gradient) const {
  const std::size_t episodes = record.episodes, rows = shape_.steps * episodes;
  const std::size_t units = shape_.units, gates = 4 * units;
  const Kernels<T>& k = kernels<T>();
  const T* p = parameters.data();
  T* g = gradient.data();
  std::fill(gradient.begin(), gradient.end(), T(0));

  // The layer of the outputs.
  k.multiply(units, stride_, rows, record.state.data(), 1, units, doutputs.data(),
             Layout::plain(stride_), g + at_.output, stride_, false);
  add_rows(rows, stride_, doutputs.data(), g + at_.output_bias);
  record.dstate.resize(rows * units);
  pack_transposed(p + at_.output, units, stride_, record.packed_transposed);
  k.multiply(rows, units, stride_, doutputs.data(), stride_, 1, record.packed_transposed.data(),
             Layout::packed(stride_), record.dstate.data(), units, false);

  // Back through time.
  record.dcell.assign(episodes * units, T(0));
  record.scratch.resize(gates);
  pack_transposed(p + at_.recurrent, units, gates, record.packed_transposed);
  const std::vector<T> nothing(episodes * units, T(0));
  for (std::size_t step = shape_.steps; step-- > 0;) {
    const std::size_t row = step * episodes;
    LstmStep<T> s = lstm_step(parameters, record, step);
    s.cell_before = step == 0 ? nothing.data() : record.cell.data() + (row - episodes) * units;
    LstmStepGradient<T> d;
    d.state = record.dstate.data() + row * units;
    d.cell = record.dcell.data();
    d.scratch = record.scratch.data();
    d.recurrent_gain = g + at_.recurrent_gain;
    d.cell_gain = g + at_.cell_gain;
    d.cell_bias = g + at_.cell_bias;
    k.step_gradient(s, d);
    if (step > 0)
      k.multiply(episodes, units, gates, s.recurrent, gates, 1, record.packed_transposed.data(),
                 Layout::packed(gates), record.dstate.data() + (row - episodes) * units, units,
                 true);
  }
  if (shape_.steps > 1)
    k.multiply(units, gates, rows - episodes, record.state.data(), 1, units,
               record.recurrent.data() + episodes * gates, Layout::plain(gates), g + at_.recurrent,
               gates, false);
  input_gradient(parameters, record, gradient);
}

template <class T>
void Network<T>::input_gradient(std::span<const T> parameters, Record& record,
                                std::span<T> gradient) const {
  const std::size_t episodes = record.episodes, rows = shape_.steps * episodes;
  const std::size_t gates = 4 * shape_.units;
  T* g = gradient.data();
  add_rows(rows, gates, record.gates.data(), g + at_.bias);
  if (shape_.layer_norm)
    kernels<T>().normalize_gradient(rows, gates, record.input.data(), record.input_scale.data(),
                                    parameters.data() + at_.input_gain, record.gates.data(),
                                    g + at_.input_gain);
  for (std::size_t row = 0; row < rows; ++row) {
    const T* from = record.gates.data() + row * gates;
    const std::size_t step = row / episodes;
    add_rows(1, gates, from, g + at_.steps + step * gates);
    if (step > 0) add_rows(1, gates, from, g + at_.actions + record.last_actions[row] * gates);
  }
}

template <class T>
Network<T>::Walk::Walk(const Network& network, std::span<const T> parameters)
    : network_(network), parameters_(parameters), outputs_(network.stride_) {
  network.resize(record_, 2, 1);  // this step and the one before, in turn
  const std::size_t units = network.shape_.units;
  pack(parameters.data() + network.at_.recurrent, units, 4 * units, record_.packed_recurrent);
}

template <class T>
std::span<const T> Network<T>::Walk::next(std::uint32_t last_action) {
  const std::size_t units = network_.shape_.units;
  // The step is always in the second row; what it was moves to the first.
  std::copy_n(record_.state.begin() + static_cast<std::ptrdiff_t>(units), units,
              record_.state.begin());
  std::copy_n(record_.cell.begin() + static_cast<std::ptrdiff_t>(units), units,
              record_.cell.begin());
  record_.last_actions[0] = last_action;
  network_.read_inputs(parameters_, record_, step_, 1);
  std::copy_n(record_.input.begin(), 4 * units,
              record_.input.begin() + static_cast<std::ptrdiff_t>(4 * units));
  network_.run_step(parameters_, record_, 1, step_ == 0 ? nullptr : record_.state.data(),
                    record_.cell.data());
  ++step_;
  std::copy_n(parameters_.data() + network_.at_.output_bias, network_.stride_, outputs_.begin());
  kernels<T>().multiply(1, network_.stride_, units, record_.state.data() + units, units, 1,
                        parameters_.data() + network_.at_.output, Layout::plain(network_.stride_),
                        outputs_.data(), network_.stride_, true);
  return outputs_;
}

template class Network<float>;
template class Network<double>;

}  // namespace kolo::nas

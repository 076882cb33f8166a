// The body of kernels_<set>.cc, which define KOLO_ISA. No standard headers: inline functions of
// theirs, compiled for a newer processor, could be the copies that the linker keeps.
#include "nas/ppo/kernels.h"

namespace kolo::nas::KOLO_ISA {
namespace {

#if defined(__AVX512F__)
constexpr size_t kRegisterBytes = 64, kTileRows = 10;
#elif defined(__AVX2__)
constexpr size_t kRegisterBytes = 32, kTileRows = 5;
#else
constexpr size_t kRegisterBytes = 16, kTileRows = 5;
#endif
constexpr size_t kTileVectors = 2;

template <class T>
struct Wide {
  using Vector [[gnu::vector_size(kRegisterBytes)]] = T;
  static constexpr size_t kWidth = kRegisterBytes / sizeof(T);
};

template <class T>
inline void load(typename Wide<T>::Vector& vector, const T* from) {
  __builtin_memcpy(&vector, from, kRegisterBytes);
}
template <class T>
inline void store(T* to, const typename Wide<T>::Vector& vector) {
  __builtin_memcpy(to, &vector, kRegisterBytes);
}

/// Sixteen numbers, in as many registers as they need. Sums over a row are sixteen partial sums on
/// every processor: their order is the same.
template <class T>
struct Lanes {
  static constexpr size_t kCount = 16, kParts = kCount / Wide<T>::kWidth;
  typename Wide<T>::Vector part[kParts];

  static inline Lanes zero() {
    Lanes lanes;
    for (size_t i = 0; i < kParts; ++i) lanes.part[i] = typename Wide<T>::Vector{};
    return lanes;
  }
  static inline Lanes from(const T* values) {
    Lanes lanes;
    for (size_t i = 0; i < kParts; ++i) load<T>(lanes.part[i], values + i * Wide<T>::kWidth);
    return lanes;
  }
  inline void into(T* values) const {
    for (size_t i = 0; i < kParts; ++i) store<T>(values + i * Wide<T>::kWidth, part[i]);
  }
  inline void add(const Lanes& other) {
    for (size_t i = 0; i < kParts; ++i) part[i] += other.part[i];
  }
  inline void add_product(const Lanes& left, const Lanes& right) {
    for (size_t i = 0; i < kParts; ++i) part[i] += left.part[i] * right.part[i];
  }
  inline void subtract(T number) {
    for (size_t i = 0; i < kParts; ++i) part[i] -= number;
  }
  inline void scale(T number) {
    for (size_t i = 0; i < kParts; ++i) part[i] *= number;
  }
  inline void scale(const Lanes& other) {
    for (size_t i = 0; i < kParts; ++i) part[i] *= other.part[i];
  }
  [[nodiscard]] inline T total() const {
    T lane[kCount];
    into(lane);
    for (size_t half = kCount / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
  }
};

template <class T, size_t kRows>
inline void tile(size_t depth, const T* a, size_t a_row, size_t a_column, const T* b,
                 size_t b_stride, T* c, size_t c_stride, bool accumulate) {
  using Vector = typename Wide<T>::Vector;
  Vector sums[kRows][kTileVectors];
#pragma GCC unroll 10
  for (size_t m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (size_t v = 0; v < kTileVectors; ++v) {
      if (accumulate)
        load<T>(sums[m][v], c + m * c_stride + v * Wide<T>::kWidth);
      else
        sums[m][v] = Vector{};
    }
  for (size_t k = 0; k < depth; ++k) {
    Vector right[kTileVectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < kTileVectors; ++v)
      load<T>(right[v], b + k * b_stride + v * Wide<T>::kWidth);
#pragma GCC unroll 10
    for (size_t m = 0; m < kRows; ++m) {
      const T left = a[m * a_row + k * a_column];
#pragma GCC unroll 2
      for (size_t v = 0; v < kTileVectors; ++v) sums[m][v] += left * right[v];
    }
  }
#pragma GCC unroll 10
  for (size_t m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (size_t v = 0; v < kTileVectors; ++v)
      store<T>(c + m * c_stride + v * Wide<T>::kWidth, sums[m][v]);
}

template <class T, size_t kRows>
void last_rows(size_t rows, size_t depth, const T* a, size_t a_row, size_t a_column, const T* b,
               size_t b_stride, T* c, size_t c_stride, bool accumulate) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      tile<T, kRows>(depth, a, a_row, a_column, b, b_stride, c, c_stride, accumulate);
    else
      last_rows<T, kRows - 1>(rows, depth, a, a_row, a_column, b, b_stride, c, c_stride,
                              accumulate);
  }
}

template <class T>
void multiply(size_t rows, size_t columns, size_t depth, const T* a, size_t a_row, size_t a_column,
              const T* b, Layout layout, T* c, size_t c_stride, bool accumulate) {
  constexpr size_t kColumns = kTileVectors * Wide<T>::kWidth;
  static_assert(kPadding % kColumns == 0);
  for (size_t n = 0; n < columns; n += kColumns) {
    const T* panel = b + n / kPadding * layout.panel + n % kPadding;
    size_t m = 0;
    for (; m + kTileRows <= rows; m += kTileRows)
      tile<T, kTileRows>(depth, a + m * a_row, a_row, a_column, panel, layout.row,
                         c + m * c_stride + n, c_stride, accumulate);
    last_rows<T, kTileRows - 1>(rows - m, depth, a + m * a_row, a_row, a_column, panel, layout.row,
                                c + m * c_stride + n, c_stride, accumulate);
  }
}

// e^x = 2^k e^r with |r| <= ln 2 / 2, and Taylor's polynomial for e^r: 2e-7 of the value.
inline float exponential(float x) {
  x = x > 87.0F ? 87.0F : x < -87.0F ? -87.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it drops what is behind the point
  const float k = (x * 1.44269504F + kRound) - kRound;
  const float r = (x - k * 0.693359375F) + k * 2.12194440e-4F;
  const float e =
      1.0F +
      r * (1.0F + r * (0.5F + r * (1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r / 720)))));
  return e * __builtin_bit_cast(float, (static_cast<int>(k) + 127) << 23);
}
inline double exponential(double x) { return __builtin_exp(x); }

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}
template <class T>
inline T hyperbolic_tangent(T x) {
  return T(2) / (T(1) + exponential(T(-2) * x)) - T(1);
}

template <class T>
inline T normalize_row(size_t width, T* values) {
  using Group = Lanes<T>;
  Group sum = Group::zero(), squares = Group::zero();
  for (size_t j = 0; j < width; j += Group::kCount) sum.add(Group::from(values + j));
  const T mean = sum.total() / static_cast<T>(width);
  for (size_t j = 0; j < width; j += Group::kCount) {
    Group x = Group::from(values + j);
    x.subtract(mean);
    squares.add_product(x, x);
  }
  const T variance = squares.total() / static_cast<T>(width);
  const T scale = T(1) / root(variance + T(1e-5));
  for (size_t j = 0; j < width; j += Group::kCount) {
    Group x = Group::from(values + j);
    x.subtract(mean);
    x.scale(scale);
    x.into(values + j);
  }
  return scale;
}

/// With y = (x - mean) * scale: dx = scale * (dy - mean(dy) - y * mean(dy * y)), where dy is `dout`
/// times the gain. `work` may be `dout`, `dx` may be that or `normal`.
template <class T>
inline void normalize_row_gradient(size_t width, const T* normal, T scale, const T* gain,
                                   const T* dout, T* work, T* dx, T* dgain) {
  using Group = Lanes<T>;
  Group sum = Group::zero(), product = Group::zero();
  for (size_t j = 0; j < width; j += Group::kCount) {
    const Group y = Group::from(normal + j);
    Group d = Group::from(dout + j), of_gain = Group::from(dgain + j);
    of_gain.add_product(d, y);
    of_gain.into(dgain + j);
    d.scale(Group::from(gain + j));
    sum.add(d);
    product.add_product(d, y);
    d.into(work + j);
  }
  const T mean = sum.total() / static_cast<T>(width);
  const T slope = product.total() / static_cast<T>(width);
  for (size_t j = 0; j < width; j += Group::kCount) {
    Group y = Group::from(normal + j), d = Group::from(work + j);
    y.scale(-slope);
    d.subtract(mean);
    d.add(y);
    d.scale(scale);
    d.into(dx + j);
  }
}

template <class T>
void normalize(size_t rows, size_t width, T* values, T* scale) {
  for (size_t row = 0; row < rows; ++row) scale[row] = normalize_row(width, values + row * width);
}

template <class T>
void normalize_gradient(size_t rows, size_t width, const T* normal, const T* scale, const T* gain,
                        T* dy, T* dgain) {
  for (size_t row = 0; row < rows; ++row) {
    T* mine = dy + row * width;
    normalize_row_gradient(width, normal + row * width, scale[row], gain, mine, mine, mine, dgain);
  }
}

template <class T>
T squares(size_t count, const T* values) {
  using Group = Lanes<T>;
  Group sum = Group::zero();
  for (size_t i = 0; i < count; i += Group::kCount) {
    const Group x = Group::from(values + i);
    sum.add_product(x, x);
  }
  return sum.total();
}

template <class T>
void descend(size_t count, T scale, T rate, const T* __restrict gradient, T* __restrict first,
             T* __restrict second, T* __restrict weights) {
  constexpr T kFirstDecay = T(0.9), kSecondDecay = T(0.999), kEpsilon = T(1e-5);
  for (size_t i = 0; i < count; ++i) {
    const T slope = gradient[i] * scale;
    const T mean = kFirstDecay * first[i] + (T(1) - kFirstDecay) * slope;
    const T square = kSecondDecay * second[i] + (T(1) - kSecondDecay) * slope * slope;
    first[i] = mean;
    second[i] = square;
    weights[i] -= rate * mean / (root(square) + kEpsilon);
  }
}

/// What goes into the gates.
template <class T>
struct Sum {
  const T* __restrict input, * __restrict input_gain, * __restrict recurrent, * __restrict recurrent_gain, * __restrict bias;
  inline T at(size_t j) const {
    return input_gain[j] * input[j] + (recurrent_gain[j] * recurrent[j] + bias[j]);
  }
};
template <class T>
struct PlainSum {
  const T* __restrict input, * __restrict recurrent, * __restrict bias;
  inline T at(size_t j) const { return input[j] + recurrent[j] + bias[j]; }
};

template <class T, class Into>
inline void open_gates(size_t units, Into into, T* __restrict gates) {
  for (size_t j = 0; j < 3 * units; ++j) gates[j] = sigmoid(into.at(j));
  for (size_t j = 3 * units; j < 4 * units; ++j) gates[j] = hyperbolic_tangent(into.at(j));
}

template <class T>
inline void update_cell(size_t units, const T* __restrict gates, const T* __restrict before,
                        T* __restrict cell) {
  const T *input = gates, *forget = gates + units, *update = gates + 3 * units;
  for (size_t j = 0; j < units; ++j) cell[j] = forget[j] * before[j] + input[j] * update[j];
}

template <class T>
inline void bend(size_t units, const T* __restrict normal, const T* __restrict gain,
                 const T* __restrict bias, T* __restrict bent) {
  for (size_t j = 0; j < units; ++j) bent[j] = hyperbolic_tangent(gain[j] * normal[j] + bias[j]);
}

template <class T>
void step(const LstmStep<T>& s) {
  const size_t n = s.units;
  for (size_t row = 0; row < s.rows; ++row) {
    const T* input = s.input + row * 4 * n;
    T* recurrent = s.recurrent + row * 4 * n;
    T* __restrict gates = s.gates + row * 4 * n;
    T* cell = s.cell + row * n;
    T* __restrict bent = s.cell_tanh + row * n;
    if (s.layer_norm) {
      s.recurrent_scale[row] = normalize_row(4 * n, recurrent);
      open_gates<T>(n, Sum<T>{input, s.input_gain, recurrent, s.recurrent_gain, s.bias}, gates);
    } else {
      open_gates<T>(n, PlainSum<T>{input, recurrent, s.bias}, gates);
    }
    update_cell(n, gates, s.cell_before + row * n, cell);
    if (s.layer_norm) {
      T* normal = s.cell_normal + row * n;
      __builtin_memcpy(normal, cell, n * sizeof(T));
      s.cell_scale[row] = normalize_row(n, normal);
      bend(n, normal, s.cell_gain, s.cell_bias, bent);
    } else {
      for (size_t j = 0; j < n; ++j) bent[j] = hyperbolic_tangent(cell[j]);
    }
    T* __restrict state = s.state + row * n;
    for (size_t j = 0; j < n; ++j) state[j] = gates[2 * n + j] * bent[j];
  }
}

/// Of the output gate, in its place, and of the cell by way of the state.
template <class T>
inline void output_gradient(size_t units, const T* __restrict bent, const T* __restrict dstate,
                            T* __restrict output, T* __restrict dcell) {
  for (size_t j = 0; j < units; ++j) {
    const T o = output[j], d = dstate[j];
    output[j] = d * bent[j] * o * (T(1) - o);
    dcell[j] = d * o * (T(1) - bent[j] * bent[j]);
  }
}

/// Of the other gates, in their places, and of the cell before.
template <class T>
inline void gate_gradients(size_t units, const T* __restrict before, const T* __restrict through,
                           T* __restrict dcell, T* __restrict input, T* __restrict forget,
                           T* __restrict update) {
  for (size_t j = 0; j < units; ++j) {
    const T d = dcell[j] + through[j], i = input[j], f = forget[j], u = update[j];
    input[j] = d * u * i * (T(1) - i);
    forget[j] = d * before[j] * f * (T(1) - f);
    update[j] = d * i * (T(1) - u * u);
    dcell[j] = d * f;
  }
}

template <class T>
void step_gradient(const LstmStep<T>& s, const LstmStepGradient<T>& g) {
  const size_t n = s.units;
  for (size_t row = 0; row < s.rows; ++row) {
    T* gates = s.gates + row * 4 * n;
    T* recurrent = s.recurrent + row * 4 * n;
    T* through = g.scratch;
    output_gradient(n, s.cell_tanh + row * n, g.state + row * n, gates + 2 * n, through);
    if (s.layer_norm) {
      for (size_t j = 0; j < n; ++j) g.cell_bias[j] += through[j];
      normalize_row_gradient(n, s.cell_normal + row * n, s.cell_scale[row], s.cell_gain, through,
                             through, through, g.cell_gain);
    }
    gate_gradients(n, s.cell_before + row * n, through, g.cell + row * n, gates, gates + n,
                   gates + 3 * n);
    if (s.layer_norm)
      normalize_row_gradient(4 * n, recurrent, s.recurrent_scale[row], s.recurrent_gain, gates,
                             g.scratch, recurrent, g.recurrent_gain);
    else
      __builtin_memcpy(recurrent, gates, 4 * n * sizeof(T));
  }
}

}  // namespace

#define KOLO_PPO_TABLE(T)                                                              \
  {                                                                                    \
    multiply<T>, normalize<T>, normalize_gradient<T>, squares<T>, descend<T>, step<T>, \
        step_gradient<T>                                                               \
  }
const Kernels<float> kOfFloats KOLO_PPO_TABLE(float);
const Kernels<double> kOfDoubles KOLO_PPO_TABLE(double);
#undef KOLO_PPO_TABLE

}  // namespace kolo::nas::KOLO_ISA

// The inner loops of the policy's network, compiled once per instruction set and chosen at run
// time.
//
// They are written here, and not left to a tensor library, for two reasons. A step of an LSTM over
// a few episodes is a dozen operations on some kilobytes, where a library's bookkeeping costs more
// than the arithmetic. And what the search proposes must not depend on how many threads a library
// happens to use: here every sum has one order. The sets for AVX2 and AVX-512 give the same bits;
// the baseline rounds products before it adds them.
//
// Matrices are row-major. Widths are multiples of kPadding, so that no row ends inside a vector.
#pragma once

#include <stddef.h>

namespace kolo {
enum class InstructionSet;
}

namespace kolo::nas {

inline constexpr size_t kPadding = 32;
[[nodiscard]] constexpr size_t padded(size_t width) {
  return (width + kPadding - 1) / kPadding * kPadding;
}

/// One time step of a (layer-norm) LSTM for several episodes, and what its gradient needs later.
/// Gates lie in the order input, forget, output, update; `units` of each.
template <class T>
struct LstmStep {
  size_t rows = 0, units = 0;
  bool layer_norm = false;
  // Weights. The gains and the bias of the cell are of the normalised parts.
  const T* bias = nullptr;
  const T* input_gain = nullptr;
  const T* recurrent_gain = nullptr;
  const T* cell_gain = nullptr;
  const T* cell_bias = nullptr;

  const T* input = nullptr;  // what the input adds to the gates; normalised
  const T* cell_before = nullptr;
  T* recurrent = nullptr;        // in: state · weights; out: the same, normalised
  T* recurrent_scale = nullptr;  // 1 / deviation of each row
  T* gates = nullptr;
  T* cell = nullptr;
  T* cell_normal = nullptr;
  T* cell_scale = nullptr;
  T* cell_tanh = nullptr;
  T* state = nullptr;
};

/// The gradient of a step. That of what goes into the gates takes the place of the gates, and that
/// of state · weights the place of `recurrent`: it is memory that decides how long this takes.
template <class T>
struct LstmStepGradient {
  const T* state = nullptr;     // in
  T* cell = nullptr;            // in: of this step's cell; out: of the one before
  T* recurrent_gain = nullptr;  // these three are added to
  T* cell_gain = nullptr;
  T* cell_bias = nullptr;
  T* scratch = nullptr;  // 4 * units
};

/// Where the right side of a product lies: panels of kPadding columns, each with its rows. Packed,
/// a panel is in one piece, which is what a processor likes to read; a plain matrix is the other
/// case.
struct Layout {
  size_t panel = kPadding, row = 0;
  static constexpr Layout plain(size_t columns) { return {kPadding, columns}; }
  static constexpr Layout packed(size_t rows) { return {rows * kPadding, kPadding}; }
};

template <class T>
struct Kernels {
  /// C = A B, or C += A B; A(m, k) is at a[m * a_row + k * a_column].
  void (*multiply)(size_t rows, size_t columns, size_t depth, const T* a, size_t a_row,
                   size_t a_column, const T* b, Layout layout, T* c, size_t c_stride,
                   bool accumulate);
  /// Each row minus its mean, over its deviation; `scale` receives 1 / deviation.
  void (*normalize)(size_t rows, size_t width, T* values, T* scale);
  /// y = gain * normal; turns dy into the gradient of the values before normalize, adding to dgain.
  void (*normalize_gradient)(size_t rows, size_t width, const T* normal, const T* scale,
                             const T* gain, T* dy, T* dgain);
  /// The sum of the squares.
  T (*squares)(size_t count, const T* values);
  /// Adam (Kingma and Ba 2015) with the gradient times `scale`; `rate` has the corrections for the
  /// beginning in it. `count` is a multiple of 16, here and above.
  void (*descend)(size_t count, T scale, T rate, const T* gradient, T* first_moments,
                  T* second_moments, T* weights);
  void (*step)(const LstmStep<T>& step);
  void (*step_gradient)(const LstmStep<T>& step, const LstmStepGradient<T>& gradient);
};

/// The copy for one of the sets that this processor can run. For float and double.
template <class T>
const Kernels<T>& kernels(InstructionSet set);
/// The copy for the best of them.
template <class T>
const Kernels<T>& kernels();

#define KOLO_PPO_KERNELS(isa)              \
  namespace isa {                          \
  extern const Kernels<float> kOfFloats;   \
  extern const Kernels<double> kOfDoubles; \
  }
KOLO_PPO_KERNELS(baseline)
KOLO_PPO_KERNELS(avx2)
KOLO_PPO_KERNELS(avx512)
#undef KOLO_PPO_KERNELS

}  // namespace kolo::nas

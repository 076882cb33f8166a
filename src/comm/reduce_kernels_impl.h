// The loops of reduce(), compiled once per instruction set.
//
// reduce_kernels_<isa>.cc defines KOLO_ISA and includes this file, and nothing else, with that
// set's compiler flags. Everything here is therefore in an unnamed namespace or in namespace
// KOLO_ISA, and no inline function of another header is used: the linker would be free to give an
// AVX-512 copy of it to a machine without AVX-512.
//
// Cost: each input is read once and each output written once. Two inputs, the case of two ranks or
// two hosts, go through registers; more inputs through an accumulator block that stays in L1.
#include <stddef.h>
#include <stdint.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "comm/reduce_kernels_table.h"

#if defined(__clang__)
#define KOLO_ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define KOLO_ELEMENTWISE _Pragma("GCC ivdep")
#endif

namespace kolo::comm {
namespace {

// --- element types -------------------------------------------------------------------------------

struct __attribute__((packed)) Half {  // IEEE binary16; packed, as it may lie anywhere
  uint16_t bits;
};
struct __attribute__((packed)) Brain {  // bfloat16
  uint16_t bits;
};
struct Truth {  // bool, as a byte that need not be 0 or 1
  uint8_t byte;
};

template <class T>
struct AccumulatorOf {
  using type = T;
};
template <>
struct AccumulatorOf<Half> {
  using type = float;
};
template <>
struct AccumulatorOf<Brain> {
  using type = float;
};
template <>
struct AccumulatorOf<Truth> {
  using type = uint8_t;
};

/// An element where the caller has it, which need not be aligned. GCC drops the alignment of such a
/// name in a template unless may_alias makes a type of its own of it.
template <class T, bool IsByte = alignof(T) == 1>
struct LooseOf {
  using type = T;
};
template <class T>
struct LooseOf<T, false> {
  using type __attribute__((aligned(1), may_alias)) = T;
};
template <class T>
using Loose = typename LooseOf<T>::type;

template <class T>
inline constexpr bool kIsFloating = false;
template <>
inline constexpr bool kIsFloating<float> = true;
template <>
inline constexpr bool kIsFloating<double> = true;

inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// widen(): storage to accumulator. narrow(): back, to nearest even.
template <class T>
inline T widen(T value) {
  return value;
}
inline float widen(Brain value) { return float_of(static_cast<uint32_t>(value.bits) << 16); }
inline uint8_t widen(Truth value) { return value.byte != 0; }
inline float widen(Half value) {
  uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  uint32_t x = value.bits & 0x7fff;
  if (x >= 0x7c00) return float_of(sign | 0x7f800000 | (x & 0x3ff) << 13);
  if (x >= 0x400) return float_of(sign | ((x << 13) + 0x38000000));
  return float_of(bits_of(static_cast<float>(x) * 0x1p-24F) | sign);
}

template <class T>
struct Narrow {
  static T from(T value) { return value; }
};
template <>
struct Narrow<Truth> {
  static Truth from(uint8_t value) { return {value}; }
};
template <>
struct Narrow<Brain> {
  static Brain from(float value) {
    uint32_t x = bits_of(value);
    bool nan = (x & 0x7fffffff) > 0x7f800000;
    uint32_t rounded = (x + 0x7fff + ((x >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>(nan ? ((x >> 16) | 0x40) : rounded)};
  }
};
template <>
struct Narrow<Half> {
  static Half from(float value) {
    uint32_t x = bits_of(value);
    uint32_t sign = (x >> 16) & 0x8000;
    x &= 0x7fffffff;
    uint32_t bits;
    if (x >= 0x47800000)
      bits = x > 0x7f800000 ? 0x7e00 : 0x7c00;
    else if (x < 0x38800000)
      bits = bits_of(float_of(x) + 0.5F) - 0x3f000000;
    else
      bits = (x - 0x38000000 + 0xfff + ((x >> 13) & 1)) >> 13;
    return {static_cast<uint16_t>(sign | bits)};
  }
};

// --- reductions ----------------------------------------------------------------------------------

template <class T>
struct WrappingOf {
  using type = T;
};
template <>
struct WrappingOf<int8_t> {
  using type = uint8_t;
};
template <>
struct WrappingOf<int16_t> {
  using type = uint16_t;
};
template <>
struct WrappingOf<int32_t> {
  using type = uint32_t;
};
template <>
struct WrappingOf<int64_t> {
  using type = uint64_t;
};

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    using W = typename WrappingOf<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Product {
  template <class T>
  static T apply(T a, T b) {
    using W = typename WrappingOf<T>::type;
    if constexpr (sizeof(T) < sizeof(unsigned) && !kIsFloating<T>)
      return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
    else
      return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloating<T>)
      return ((a < b) | (a != a)) ? a : b;
    else
      return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloating<T>)
      return ((a > b) | (a != a)) ? a : b;
    else
      return a > b ? a : b;
  }
};

// --- factors -------------------------------------------------------------------------------------

template <class T>
struct Limits {
  static constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr T kMax =
      kSigned ? static_cast<T>((~0ULL) >> (65 - 8 * sizeof(T))) : static_cast<T>(~0ULL);
  static constexpr T kMin = kSigned ? static_cast<T>(-kMax - 1) : static_cast<T>(0);
};

/// double to integer: toward zero, saturating, NaN to 0.
template <class T>
inline T truncated(double value) {
  if (value != value) return 0;
  if (value >= static_cast<double>(Limits<T>::kMax)) return Limits<T>::kMax;
  if (value <= static_cast<double>(Limits<T>::kMin)) return Limits<T>::kMin;
  return static_cast<T>(value);
}

/// In a type that holds the number of ranks: as an 8-bit integer, 256 of them would be 0.
template <class A>
inline A divided(A value, int64_t divisor) {
  if constexpr (sizeof(A) < sizeof(int))
    return static_cast<A>(static_cast<int>(value) / static_cast<int>(divisor));
  else
    return static_cast<A>(value / static_cast<A>(divisor));
}

struct Unscaled {
  template <class A>
  static A before(A value, const ReduceScale&) {
    return value;
  }
  template <class A>
  static A after(A value, const ReduceScale&) {
    return value;
  }
};
struct Scaled {
  template <class A>
  static A before(A value, const ReduceScale& scale) {
    if constexpr (kIsFloating<A>)
      return value * static_cast<A>(scale.before);
    else
      return scale.before == 1.0 ? value : truncated<A>(static_cast<double>(value) * scale.before);
  }
  template <class A>
  static A after(A value, const ReduceScale& scale) {
    if constexpr (kIsFloating<A>)
      return value * static_cast<A>(scale.after);
    else if (scale.after_factor == 1.0)
      return divided(value, scale.divisor);
    else
      return truncated<A>(static_cast<double>(value) * scale.after_factor /
                          static_cast<double>(scale.divisor));
  }
};

// --- loops ---------------------------------------------------------------------------------------

constexpr size_t kBlock = 512;

// The steps over one block are functions of their own, never inlined: each is compiled once for
// its types instead of once for every combination of types, operation and factors that uses it.
// A call per 512 elements costs nothing that could be measured.
#define KOLO_STEP __attribute__((noinline)) void

template <class In, class A>
KOLO_STEP load_block(A* acc, const Loose<In>* in, size_t n) {
  size_t i = 0;
#ifdef __F16C__
  if constexpr (__is_same(In, Half)) {
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(acc + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
#endif
  KOLO_ELEMENTWISE
  for (size_t j = i; j < n; ++j) acc[j] = widen(in[j]);
}

template <class Out, class A>
KOLO_STEP store_block(Loose<Out>* out, const A* acc, size_t n) {
  size_t i = 0;
#ifdef __F16C__
  if constexpr (__is_same(Out, Half)) {
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(acc + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  KOLO_ELEMENTWISE
  for (size_t j = i; j < n; ++j) out[j] = Narrow<Out>::from(acc[j]);
}

template <class Op, class A>
KOLO_STEP combine_block(A* acc, const Loose<A>* in, size_t n) {
  KOLO_ELEMENTWISE
  for (size_t i = 0; i < n; ++i) acc[i] = Op::apply(acc[i], in[i]);
}

template <class A>
KOLO_STEP scale_block_before(A* acc, size_t n, const ReduceScale& given) {
  const ReduceScale scale = given;
  KOLO_ELEMENTWISE
  for (size_t i = 0; i < n; ++i) acc[i] = Scaled::before(acc[i], scale);
}

template <class A>
KOLO_STEP scale_block_after(A* acc, size_t n, const ReduceScale& given) {
  const ReduceScale scale = given;
  KOLO_ELEMENTWISE
  for (size_t i = 0; i < n; ++i) acc[i] = Scaled::after(acc[i], scale);
}

/// A handful of elements, one by one: the preparations of a vector loop would cost more than the
/// work.
template <class In, class Out, class Op, class Scale>
void reduce_few(const ReduceCall& call) {
  using A = typename AccumulatorOf<In>::type;
  for (size_t i = 0; i < call.count; ++i) {
    A acc = Scale::before(static_cast<A>(widen(static_cast<const Loose<In>*>(call.inputs[0])[i])),
                          call.scale);
    for (size_t k = 1; k < call.input_count; ++k)
      acc = Op::apply(
          acc,
          Scale::before(static_cast<A>(widen(static_cast<const Loose<In>*>(call.inputs[k])[i])),
                        call.scale));
    const Out value = Narrow<Out>::from(Scale::after(acc, call.scale));
    for (size_t o = 0; o < call.output_count; ++o)
      static_cast<Loose<Out>*>(call.outputs[o])[i] = value;
    __asm__ volatile("");  // keeps the compiler from making a vector loop of this one
  }
}
constexpr size_t kFew = 8;

/// Two inputs, up to two outputs, same plain type: all in registers.
template <class T, class Op, class Scale>
void reduce_two(const ReduceCall& call) {
  const auto* a = static_cast<const Loose<T>*>(call.inputs[0]);
  const auto* b = static_cast<const Loose<T>*>(call.inputs[1]);
  auto* x = static_cast<Loose<T>*>(call.outputs[0]);
  const size_t count = call.count;
  const ReduceScale scale = call.scale;
  if (call.output_count < 2) {
    KOLO_ELEMENTWISE
    for (size_t i = 0; i < count; ++i)
      x[i] = Scale::after(Op::apply(Scale::before(a[i], scale), Scale::before(b[i], scale)), scale);
    return;
  }
  auto* y = static_cast<Loose<T>*>(call.outputs[1]);
  KOLO_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    T value =
        Scale::after(Op::apply(Scale::before(a[i], scale), Scale::before(b[i], scale)), scale);
    x[i] = value;
    y[i] = value;
  }
}

template <class In, class Out, class Op>
void reduce_blocks(const ReduceCall& call) {
  using A = typename AccumulatorOf<In>::type;
  alignas(64) A acc[kBlock];
  alignas(64) A next[kBlock];
  for (size_t start = 0; start < call.count; start += kBlock) {
    const size_t n = call.count - start < kBlock ? call.count - start : kBlock;
    load_block<In>(acc, static_cast<const Loose<In>*>(call.inputs[0]) + start, n);
    if (call.scaled) scale_block_before(acc, n, call.scale);
    for (size_t k = 1; k < call.input_count; ++k) {
      const Loose<In>* in = static_cast<const Loose<In>*>(call.inputs[k]) + start;
      if constexpr (__is_same(In, A)) {
        if (!call.scaled) {
          combine_block<Op>(acc, in, n);
          continue;
        }
      }
      load_block<In>(next, in, n);
      if (call.scaled) scale_block_before(next, n, call.scale);
      combine_block<Op>(acc, next, n);
    }
    if (call.scaled) scale_block_after(acc, n, call.scale);
    for (size_t o = 0; o < call.output_count; ++o)
      store_block<Out>(static_cast<Loose<Out>*>(call.outputs[o]) + start, acc, n);
  }
}

template <class In, class Out, class Op>
void reduce_any(const ReduceCall& call) {
  using A = typename AccumulatorOf<In>::type;
  if (call.count <= kFew)
    return call.scaled ? reduce_few<In, Out, Op, Scaled>(call)
                       : reduce_few<In, Out, Op, Unscaled>(call);
  if constexpr (__is_same(In, A) && __is_same(Out, A)) {
    if (call.input_count == 2 && call.output_count <= 2) {
      if (!call.scaled) return reduce_two<A, Op, Unscaled>(call);
      // Integers with factors are rare and go through doubles: not worth loops of their own.
      if constexpr (kIsFloating<A>) return reduce_two<A, Op, Scaled>(call);
    }
  }
  reduce_blocks<In, Out, Op>(call);
}

template <class In, class Out>
constexpr ReduceOps ops_for() {
  return {reduce_any<In, Out, Sum>, reduce_any<In, Out, Min>, reduce_any<In, Out, Max>,
          reduce_any<In, Out, Product>};
}

constexpr ReduceOps truth_ops() {
  return {reduce_any<Truth, Truth, Max>, reduce_any<Truth, Truth, Min>,
          reduce_any<Truth, Truth, Max>, reduce_any<Truth, Truth, Min>};
}

}  // namespace

namespace KOLO_ISA {
extern const ReduceTable kReduceTable;
const ReduceTable kReduceTable = {
    .same = {truth_ops(), ops_for<uint8_t, uint8_t>(), ops_for<int8_t, int8_t>(),
             ops_for<int16_t, int16_t>(), ops_for<int32_t, int32_t>(), ops_for<int64_t, int64_t>(),
             ops_for<Half, Half>(), ops_for<Brain, Brain>(), ops_for<float, float>(),
             ops_for<double, double>()},
    .half_to_float = ops_for<Half, float>(),
    .brain_to_float = ops_for<Brain, float>(),
    .float_to_half = ops_for<float, Half>(),
    .float_to_brain = ops_for<float, Brain>(),
};
}  // namespace KOLO_ISA

}  // namespace kolo::comm

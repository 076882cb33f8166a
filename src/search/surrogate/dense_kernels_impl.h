// The loops of dense_kernels.h, compiled once per instruction set.
//
// dense_kernels_<isa>.cc defines KOLO_ISA and includes this file, and nothing else, with that set's
// compiler flags. Everything here is in an unnamed namespace or in namespace KOLO_ISA, and no
// inline function of another header is used: the linker would be free to give an AVX-512 copy of it
// to a machine without AVX-512. Eigen is not used here for the same reason.
//
// subtract_product follows Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008): A and B are copied block by block into *strips* (kTileRows rows of A,
// kTileColumns rows of B, depth by depth) that stay in the caches, and a *tile* of C is kept in
// registers while the strips pass by. An entry of C is always the sum over the depth from first to
// last, block by block, whatever the shape of the tile.
#include <stddef.h>
#include <stdint.h>

#include "search/surrogate/dense_kernels.h"

namespace kolo::search {
namespace {

#if defined(__AVX512F__)
constexpr size_t kLanes = 8, kTileVectors = 2, kTileColumns = 8;
#elif defined(__AVX2__)
constexpr size_t kLanes = 4, kTileVectors = 2, kTileColumns = 4;
#else
constexpr size_t kLanes = 2, kTileVectors = 2, kTileColumns = 4;
#endif
using Lanes [[gnu::vector_size(kLanes * sizeof(double)), gnu::aligned(8), gnu::may_alias]] = double;
constexpr size_t kTileRows = kTileVectors * kLanes;
constexpr size_t kBlock = 64;        // rows of A, or of B, that are packed at a time
constexpr size_t kBlockDepth = 192;  // two packed blocks are 192 KiB

inline const Lanes& lanes(const double* at) { return *reinterpret_cast<const Lanes*>(at); }
inline Lanes& lanes(double* at) { return *reinterpret_cast<Lanes*>(at); }

/// Copies `rows` x `depth` numbers into strips of `strip` rows; missing rows become zeros.
inline void pack(const double* from, size_t stride, size_t rows, size_t depth, size_t strip,
                 double* to) {
  for (size_t first = 0; first < rows; first += strip) {
    const size_t present = rows - first < strip ? rows - first : strip;
    for (size_t k = 0; k < depth; ++k, to += strip) {
      const double* column = from + first + k * stride;
      for (size_t i = 0; i < present; ++i) to[i] = column[i];
      for (size_t i = present; i < strip; ++i) to[i] = 0.0;
    }
  }
}

/// One tile: the product of two strips, subtracted from the present part of C.
inline void subtract_tile(const double* a, const double* b, size_t depth, double* c, size_t stride,
                          size_t rows, size_t columns) {
  Lanes sums[kTileColumns][kTileVectors] = {};
  for (size_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    Lanes left[kTileVectors];
    for (size_t v = 0; v < kTileVectors; ++v) left[v] = lanes(a + v * kLanes);
    for (size_t j = 0; j < kTileColumns; ++j)
      for (size_t v = 0; v < kTileVectors; ++v) sums[j][v] += left[v] * b[j];
  }
  if (rows == kTileRows && columns == kTileColumns) {
    for (size_t j = 0; j < kTileColumns; ++j)
      for (size_t v = 0; v < kTileVectors; ++v) lanes(c + j * stride + v * kLanes) -= sums[j][v];
    return;
  }
  for (size_t j = 0; j < columns; ++j)
    for (size_t i = 0; i < rows; ++i) c[j * stride + i] -= sums[j][i / kLanes][i % kLanes];
}

void subtract_product(size_t rows, size_t columns, size_t depth, const double* a, size_t a_stride,
                      const double* b, size_t b_stride, double* c, size_t c_stride) {
  alignas(64) double packed_a[kBlock * kBlockDepth];
  alignas(64) double packed_b[kBlock * kBlockDepth];
  for (size_t k = 0; k < depth; k += kBlockDepth) {
    const size_t deep = depth - k < kBlockDepth ? depth - k : kBlockDepth;
    for (size_t j = 0; j < columns; j += kBlock) {
      const size_t wide = columns - j < kBlock ? columns - j : kBlock;
      pack(b + j + k * b_stride, b_stride, wide, deep, kTileColumns, packed_b);
      for (size_t i = 0; i < rows; i += kBlock) {
        const size_t high = rows - i < kBlock ? rows - i : kBlock;
        pack(a + i + k * a_stride, a_stride, high, deep, kTileRows, packed_a);
        for (size_t jj = 0; jj < wide; jj += kTileColumns)
          for (size_t ii = 0; ii < high; ii += kTileRows)
            subtract_tile(packed_a + ii * deep, packed_b + jj * deep, deep,
                          c + (i + ii) + (j + jj) * c_stride, c_stride,
                          high - ii < kTileRows ? high - ii : kTileRows,
                          wide - jj < kTileColumns ? wide - jj : kTileColumns);
      }
    }
  }
}

/// exp(x) for -708 <= x <= 0, elementwise and with the same bits at every vector width: x = n ln2 +
/// r with |r| <= ln2/2, a polynomial in r, and n added to the exponent. Error below 2 ulp.
inline double exp_negative(double x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5·2^52: adding it rounds to an integer
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double shifted = x * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  int64_t bits = 0, exponent = 0;
  __builtin_memcpy(&bits, &p, sizeof bits);
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 52;  // the low bits of `shifted` are n in two's complement
  double result = 0.0;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}

constexpr double kRoot5 = 2.2360679774997896964;
constexpr double kFarthest = 700.0;  // √5 r beyond which the covariance is as good as zero

inline double scaled_distance(double squared) {
  const double r = kRoot5 * __builtin_sqrt(squared > 0.0 ? squared : 0.0);
  return r < kFarthest ? r : kFarthest;
}

void matern52(double* values, size_t count, double variance) {
  for (size_t i = 0; i < count; ++i) {
    const double s = scaled_distance(values[i]);
    values[i] = variance * (1.0 + s + s * s * (1.0 / 3.0)) * exp_negative(-s);
  }
}

void matern52_with_slope(double* __restrict values, double* __restrict slopes, size_t count,
                         double variance) {
  for (size_t i = 0; i < count; ++i) {
    const double s = scaled_distance(values[i]);
    const double decay = variance * exp_negative(-s);
    values[i] = (1.0 + s + s * s * (1.0 / 3.0)) * decay;
    slopes[i] = (5.0 / 3.0) * (1.0 + s) * decay;
  }
}

}  // namespace

namespace KOLO_ISA {
extern const DenseKernels kDenseKernels;
const DenseKernels kDenseKernels = {subtract_product, matern52, matern52_with_slope};
}  // namespace KOLO_ISA

}  // namespace kolo::search

// vectors[r] is this rank's slice of the vector of rank r, in double. At stride s = 1, 2, 4 … the
// vectors at i and i + s are combined into i, for i a multiple of 2s; at the end the result is in
// vectors[0]. The dot products of a level are summed over all ranks in one exchange, since each
// rank sees only its slice.
#include "comm/adasum.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/errors.h"
#include "comm/card.h"

namespace kolo::comm {
namespace {

struct Dots {
  double aa = 0, bb = 0, ab = 0;
};

double load(const std::byte* data, std::size_t i, DataType type) {
  const auto at = [&]<class T>(T value) {
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case DataType::float16: return static_cast<float>(at(float16()));
    case DataType::bfloat16: return static_cast<float>(at(bfloat16()));
    case DataType::float32: return at(0.0F);
    default: return at(0.0);
  }
}

void store(std::byte* data, std::size_t i, DataType type, double number) {
  const auto put = [&]<class T>(T value) { std::memcpy(data + i * sizeof(T), &value, sizeof(T)); };
  switch (type) {
    case DataType::float16: return put(float16(static_cast<float>(number)));
    case DataType::bfloat16: return put(bfloat16(static_cast<float>(number)));
    case DataType::float32: return put(static_cast<float>(number));
    default: return put(number);
  }
}

/// A meeting without data of its own, for the bulk operation that follows.
void meet(Group& group, const void* input, void* output) {
  Card card;
  card.kind = OpKind::allreduce;
  card.op = ReduceOp::adasum;
  card.input = reinterpret_cast<std::uint64_t>(input);
  card.output = reinterpret_cast<std::uint64_t>(output);
  sign(card, Agree::all_but_count);
  group.exchange(card, nullptr, 0);
}

/// Sums the dots over the ranks, in rank order so that all get the same bits.
void sum_over_ranks(Group& group, std::vector<Dots>& dots) {
  const std::size_t most = group.eager_bytes() / sizeof(Dots);
  Card card;
  card.kind = OpKind::allreduce;
  card.op = ReduceOp::adasum;
  sign(card, Agree::all_but_count);
  for (std::size_t first = 0; first < dots.size(); first += most) {
    const std::size_t count = std::min(most, dots.size() - first);
    const std::size_t bytes = count * sizeof(Dots);
    const Exchanged all = group.exchange(card, &dots[first], bytes);
    std::vector<Dots> sums(count);
    for (int r = 0; r < group.size(); ++r)
      for (std::size_t i = 0; i < count; ++i) {
        Dots part;
        std::memcpy(&part, all.payload(r, bytes) + i * sizeof(Dots), sizeof part);
        sums[i].aa += part.aa;
        sums[i].bb += part.bb;
        sums[i].ab += part.ab;
      }
    std::copy(sums.begin(), sums.end(), dots.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

// 1 - <a,b> / 2|a|²; 1 where the vector is practically zero.
double coefficient(double dot, double squared_norm) {
  static const double kTiny = std::sqrt(DBL_MIN);
  return squared_norm < kTiny ? 1.0 : 1.0 - dot / (2.0 * squared_norm);
}

}  // namespace

void adasum(Group& group, const void* input, void* output, std::size_t count, DataType type,
            const Scaling& scaling) {
  const auto n = static_cast<std::size_t>(group.size());
  const auto me = static_cast<std::size_t>(group.rank());
  const std::size_t element = size_of(type);
  std::vector<std::size_t> slices(n);
  for (std::size_t r = 0; r < n; ++r) slices[r] = (count * (r + 1) / n - count * r / n) * element;
  const std::size_t length = slices[me] / element;

  std::vector<std::byte> received(n * slices[me]);
  meet(group, input, received.data());
  group.alltoall(input, slices, received.data(), std::vector<std::size_t>(n, slices[me]));

  std::vector<double> vectors(n * length);  // row r: this rank's slice of rank r's vector
  for (std::size_t i = 0; i < vectors.size(); ++i)
    vectors[i] = load(received.data(), i, type) * scaling.prescale;

  for (std::size_t stride = 1; stride < n; stride *= 2) {
    const auto each_pair = [&](auto visit) {
      std::size_t pair = 0;
      for (std::size_t i = 0; i + stride < n; i += 2 * stride)
        visit(pair++, vectors.data() + i * length, vectors.data() + (i + stride) * length);
      return pair;
    };
    std::vector<Dots> dots(n);
    dots.resize(each_pair([&](std::size_t pair, const double* a, const double* b) {
      for (std::size_t i = 0; i < length; ++i) {
        dots[pair].aa += a[i] * a[i];
        dots[pair].bb += b[i] * b[i];
        dots[pair].ab += a[i] * b[i];
      }
    }));
    sum_over_ranks(group, dots);
    each_pair([&](std::size_t pair, double* a, const double* b) {
      const double ca = coefficient(dots[pair].ab, dots[pair].aa);
      const double cb = coefficient(dots[pair].ab, dots[pair].bb);
      for (std::size_t i = 0; i < length; ++i) a[i] = ca * a[i] + cb * b[i];
    });
  }

  std::vector<std::byte> slice(slices[me]);
  for (std::size_t i = 0; i < length; ++i)
    store(slice.data(), i, type, vectors[i] * scaling.postscale);
  meet(group, slice.data(), output);
  group.allgather(slice.data(), output, slices);
}

}  // namespace kolo::comm

#include "collectives_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace collectives {
namespace {

using kolo::Communicator;
using kolo::data_type_of;
using kolo::ReduceOp;

// --- values that every type can hold, and what their reductions are ------------------------------

template <class T>
T make(double value) {
  return static_cast<T>(static_cast<float>(value));
}
template <class T>
double read(T value) {
  return static_cast<double>(static_cast<float>(value));
}

/// Two ranks of n bring a 2 (a true), the others a 1 (a false): sums and products stay small.
template <class T>
double input_of(int rank, std::size_t i, int n) {
  bool high = (static_cast<std::size_t>(rank) + i) % static_cast<std::size_t>(n) < 2;
  if constexpr (std::is_same_v<T, bool>) return high ? 1 : 0;
  return high ? 2 : 1;
}

template <class T>
double expected(ReduceOp op, std::size_t i, int n) {
  double sum = 0, product = 1, low = 2, high = 0;
  for (int rank = 0; rank < n; ++rank) {
    double value = input_of<T>(rank, i, n);
    sum += value;
    product *= value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (std::is_same_v<T, bool>) sum = high;  // any
  switch (op) {
    case ReduceOp::sum: return sum;
    case ReduceOp::average: return std::is_integral_v<T> ? std::trunc(sum / n) : sum / n;
    case ReduceOp::min: return low;
    case ReduceOp::max: return high;
    case ReduceOp::product: return product;
    case ReduceOp::adasum: break;
  }
  return std::nan("");
}

bool close(double a, double b, double tolerance = 0.01) {
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

template <class T>
bool allreduce_type(Communicator& world) {
  constexpr std::size_t kCount = 1003;
  bool right = true;
  for (ReduceOp op :
       {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    if (std::is_same_v<T, bool> && op == ReduceOp::average) continue;
    std::array<T, kCount> input{}, output{};
    for (std::size_t i = 0; i < kCount; ++i)
      input[i] = make<T>(input_of<T>(world.rank(), i, world.size()));
    world.allreduce(input.data(), output.data(), kCount, data_type_of<T>, op);
    for (std::size_t i = 0; i < kCount; ++i)
      right = right && close(read(output[i]), expected<T>(op, i, world.size()));
  }
  return right;
}

bool allreduce(Communicator& world) {
  // Not short-circuited: every rank must make every call.
  bool results[] = {allreduce_type<bool>(world),          allreduce_type<std::uint8_t>(world),
                    allreduce_type<std::int8_t>(world),   allreduce_type<std::int16_t>(world),
                    allreduce_type<std::int32_t>(world),  allreduce_type<std::int64_t>(world),
                    allreduce_type<float>(world),         allreduce_type<double>(world),
                    allreduce_type<kolo::float16>(world), allreduce_type<kolo::bfloat16>(world)};
  return std::all_of(std::begin(results), std::end(results), [](bool right) { return right; });
}

/// Adasum of equal vectors is that vector; of orthogonal vectors, their sum.
bool adasum(Communicator& world) {
  std::vector<double> equal = {3, -1, 2};
  world.allreduce(std::span(equal), ReduceOp::adasum);
  std::vector<float> orthogonal(static_cast<std::size_t>(world.size()), 0.0F);
  orthogonal[static_cast<std::size_t>(world.rank())] = 5;
  world.allreduce(std::span(orthogonal), ReduceOp::adasum);
  return close(equal[0], 3, 1e-9) && close(equal[1], -1, 1e-9) && close(equal[2], 2, 1e-9) &&
         std::all_of(orthogonal.begin(), orthogonal.end(),
                     [](float value) { return close(value, 5, 1e-6); });
}

bool scaling(Communicator& world) {
  std::vector<float> data(7, 1.0F);
  world.allreduce(std::span(data), ReduceOp::sum, {.prescale = 0.5, .postscale = 4.0});
  return std::all_of(data.begin(), data.end(),
                     [&](float value) { return value == 2.0F * world.size(); });
}

bool grouped_allreduce(Communicator& world) {
  std::vector<float> a(5, 1.0F);
  std::vector<std::int64_t> b(3, 2);
  std::vector<double> none;
  kolo::TensorRef tensors[] = {{a.data(), a.data(), a.size(), data_type_of<float>},
                               {b.data(), b.data(), b.size(), data_type_of<std::int64_t>},
                               {none.data(), none.data(), none.size(), data_type_of<double>}};
  world.grouped_allreduce(tensors, ReduceOp::sum);
  return std::all_of(a.begin(), a.end(), [&](float value) { return value == world.size(); }) &&
         std::all_of(b.begin(), b.end(),
                     [&](std::int64_t value) { return value == 2 * world.size(); });
}

/// One row more than two for each rank, so that the first rank has a row more.
bool reducescatter(Communicator& world) {
  constexpr std::size_t kRowSize = 3;
  auto ranks = static_cast<std::size_t>(world.size()), me = static_cast<std::size_t>(world.rank());
  std::size_t rows = 2 * ranks + 1;
  std::vector<float> input(rows * kRowSize);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
  std::vector<float> output(world.rows_of_rank(rows, world.rank()) * kRowSize);
  world.reducescatter(input.data(), output.data(), rows, kRowSize, data_type_of<float>,
                      ReduceOp::average);
  std::size_t first = (2 * me + (me > 0 ? 1 : 0)) * kRowSize;
  bool right = output.size() == (me == 0 ? 3 : 2) * kRowSize;
  for (std::size_t i = 0; i < output.size(); ++i)
    right = right && close(output[i], static_cast<double>(first + i), 1e-6);
  return right;
}

/// Rank r brings r elements: rank 0 none.
bool allgather(Communicator& world) {
  std::vector<std::int32_t> mine(static_cast<std::size_t>(world.rank()), world.rank());
  std::vector<std::int32_t> all = world.allgather(std::span<const std::int32_t>(mine));
  std::vector<std::int32_t> want;
  for (int rank = 0; rank < world.size(); ++rank) want.insert(want.end(), rank, rank);
  return all == want;
}

bool broadcast(Communicator& world) {
  bool right = true;
  for (int root = 0; root < world.size(); ++root) {
    std::vector<std::int16_t> data(333, static_cast<std::int16_t>(world.rank()));
    world.broadcast(std::span(data), root);
    right =
        right && std::all_of(data.begin(), data.end(), [&](auto value) { return value == root; });
  }
  return right;
}

/// Rank r sends d + 1 copies of its number to rank d.
bool alltoall(Communicator& world) {
  std::vector<std::size_t> splits;
  for (int to = 0; to < world.size(); ++to) splits.push_back(static_cast<std::size_t>(to) + 1);
  std::size_t total = 0;
  for (std::size_t split : splits) total += split;
  std::vector<float> mine(total, static_cast<float>(world.rank()));
  std::vector<float> got = world.alltoall(std::span<const float>(mine), splits);
  std::vector<float> want;
  for (int from = 0; from < world.size(); ++from)
    want.insert(want.end(), static_cast<std::size_t>(world.rank()) + 1, static_cast<float>(from));
  return got == want;
}

/// What is gathered at the last rank is scattered back from there.
bool gather_scatter(Communicator& world) {
  int root = world.size() - 1;
  auto count = static_cast<std::size_t>(world.rank()) + 1;
  std::vector<double> mine(count, world.rank() + 0.5), all, back(count, 0.0);
  std::vector<std::size_t> counts =
      world.gather(mine.data(), count, data_type_of<double>, root, Communicator::into(all));
  world.scatter(all.data(), counts, back.data(), count, data_type_of<double>, root);
  auto ranks = static_cast<std::size_t>(world.size());
  return back == mine && (world.rank() != root || all.size() == ranks * (ranks + 1) / 2);
}

/// Each rank passes its number to the next one around the ring.
bool send_recv(Communicator& world) {
  if (world.size() == 1) return true;
  int next = (world.rank() + 1) % world.size();
  int previous = (world.rank() + world.size() - 1) % world.size();
  std::int64_t mine = world.rank(), got = -1;
  world.send(&mine, 1, data_type_of<std::int64_t>, next);
  world.recv(&got, 1, data_type_of<std::int64_t>, previous);
  return got == previous;
}

bool barrier(Communicator& world) {
  for (int i = 0; i < 100; ++i) world.barrier();
  return true;
}

/// The ranks in reverse order, then the even ones only.
bool subset(Communicator& world) {
  std::vector<int> reversed, even;
  for (int rank = world.size() - 1; rank >= 0; --rank) reversed.push_back(rank);
  for (int rank = 0; rank < world.size(); rank += 2) even.push_back(rank);
  auto turned = world.subset(reversed);
  auto half = world.subset(even);
  bool right = turned->rank() == world.size() - 1 - world.rank();
  int first = turned->rank();
  turned->broadcast(std::span(&first, 1), 0);
  right = right && first == 0 && (half != nullptr) == (world.rank() % 2 == 0);
  if (half != nullptr)
    right = half->allreduce(1, ReduceOp::sum) == static_cast<int>(even.size()) && right;
  return right;
}

/// A large sum in shared memory and the same in ordinary memory: the same bits, on every rank.
bool same_bits(Communicator& world) {
  constexpr std::size_t kCount = 300'001;
  kolo::Buffer<float> own = world.allocate<float>(kCount);
  std::vector<float> foreign(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    own[i] = foreign[i] = 1.0F / static_cast<float>(i + static_cast<std::size_t>(world.rank()) + 3);
  world.allreduce(own.span(), ReduceOp::sum);
  world.allreduce(std::span(foreign), ReduceOp::sum);
  std::vector<float> first = foreign;
  world.broadcast(std::span(first), 0);
  constexpr std::size_t kBytes = kCount * sizeof(float);
  return std::memcmp(own.data(), foreign.data(), kBytes) == 0 &&
         std::memcmp(foreign.data(), first.data(), kBytes) == 0;
}

/// Counts that differ between ranks are an error on every rank, and the next operation works.
bool mismatch(Communicator& world) {
  bool refused = world.size() == 1;
  std::vector<float> data(world.rank() == 0 ? 10 : 11, 1.0F);
  try {
    world.allreduce(std::span(data), ReduceOp::sum);
  } catch (const kolo::Error& error) {
    refused = error.code() == kolo::ErrorCode::invalid_argument;
  }
  return world.allreduce(1, ReduceOp::sum) == world.size() && refused;
}

constexpr Check kChecks[] = {
    {"allreduce", "sum, average, min, max, product of 10 types", allreduce},
    {"adasum", "equal and orthogonal vectors", adasum},
    {"scaling", "factors before and after the sum", scaling},
    {"grouped_allreduce", "three tensors of three types at once", grouped_allreduce},
    {"reducescatter", "uneven rows", reducescatter},
    {"allgather", "different lengths, one of them zero", allgather},
    {"broadcast", "from each rank", broadcast},
    {"alltoall", "uneven splits", alltoall},
    {"gather, scatter", "to the last rank and back", gather_scatter},
    {"send, recv", "once around the ring", send_recv},
    {"barrier", "a hundred times", barrier},
    {"subset", "ranks reversed, and the even ones", subset},
    {"same bits", "in shared and ordinary memory, on every rank", same_bits},
    {"mismatch", "an error on every rank; the next operation works", mismatch},
};

}  // namespace

std::span<const Check> checks() { return kChecks; }

}  // namespace collectives

// The reductions of a Communicator.
#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "comm/adasum.h"
#include "comm/communicator_scratch.h"
#include "comm/meeting.h"
#include "comm/reduce_kernels.h"
#include "comm/reduction.h"
#include "kolo/communicator.h"

namespace kolo {

using comm::Agree;
using comm::Card;
using comm::Exchanged;
using comm::OpKind;
using comm::Reduction;

namespace {

void check_reduction(comm::Group& group, OpKind kind, DataType type, ReduceOp op,
                     const Scaling& scaling) {
  comm::check_type(group, kind, type);
  if (static_cast<int>(op) >= kReduceOpCount) [[unlikely]]
    comm::refuse(group, kind, "{} is not a reduction", static_cast<int>(op));
  const bool is_float = type >= DataType::float16;
  if (type == DataType::boolean &&
      (op == ReduceOp::average || scaling.prescale != 1.0 || scaling.postscale != 1.0))
    comm::refuse(group, kind,
                 "bool tensors can be neither averaged nor scaled; use sum, min, max or product "
                 "without factors");
  if (op == ReduceOp::adasum && !is_float)
    comm::refuse(group, kind, "adasum needs a floating-point type, not {}", to_string(type));
  if (kind == OpKind::reducescatter && op != ReduceOp::sum && op != ReduceOp::average)
    comm::refuse(group, kind, "{} is not supported; use sum or average", to_string(op));
}

}  // namespace

void Communicator::allreduce(const void* input, void* output, std::size_t count, DataType type,
                             ReduceOp op, Scaling scaling) {
  allreduce(OpKind::allreduce, 0, input, output, count, type, op, scaling);
}

void Communicator::allreduce(OpKind kind, std::uint64_t salt, const void* input, void* output,
                             std::size_t count, DataType type, ReduceOp op, Scaling scaling) {
  check_reduction(*group_, kind, type, op, scaling);
  comm::check_memory(*group_, kind, input, count, "input");
  comm::check_memory(*group_, kind, output, count, "output");
  Card card = comm::reduction_card(kind, input, output, count, type, op, scaling);
  sign(card, Agree::all, salt);

  const std::size_t bytes = count * size_of(type);
  if (op == ReduceOp::adasum) {
    comm::meet(*group_, card, nullptr, 0);
    if (count != 0) comm::adasum(*group_, input, output, count, type, scaling);
    return;
  }
  const Reduction how = comm::reduction_of(type, op, scaling, size());
  const bool eager = bytes <= group_->eager_bytes();
  if (!eager && group_->carries(count, type)) {
    comm::check_agreed(group_->exchange_and_allreduce(card, input, output, count, how), *group_);
    return;
  }
  const Exchanged all = comm::meet(*group_, card, input, eager ? bytes : 0);
  if (!eager) return group_->allreduce(input, output, count, how);
  if (count == 0) return;
  // Not one's own payload: its line is on its way to the others.
  scratch_->inputs.clear();
  for (int r = 0; r < size(); ++r)
    scratch_->inputs.push_back(r == rank() ? input : all.payload(r, bytes));
  comm::reduce(scratch_->inputs, {&output, 1}, count, how);
}

void Communicator::grouped_allreduce(std::span<const TensorRef> tensors, ReduceOp op,
                                     Scaling scaling, const CopyNote& note) {
  using Clock = std::chrono::steady_clock;
  // The salt makes every meeting of the group agree on the whole list.
  std::uint64_t salt = hash_combine(tensors.size(), 1);
  for (const TensorRef& tensor : tensors)
    salt = hash_combine(hash_combine(salt, tensor.count), static_cast<std::uint64_t>(tensor.type));
  for (const TensorRef& tensor : tensors) {
    comm::check_memory(*group_, OpKind::grouped_allreduce, tensor.input, tensor.count, "an input");
    comm::check_memory(*group_, OpKind::grouped_allreduce, tensor.output, tensor.count,
                       "an output");
    check_reduction(*group_, OpKind::grouped_allreduce, tensor.type, op, scaling);
  }
  if (tensors.empty())  // still a meeting: the others' lists may not be empty
    return allreduce(OpKind::grouped_allreduce, salt, nullptr, nullptr, 0, DataType::uint8,
                     ReduceOp::sum, scaling);
  if (op == ReduceOp::adasum) {  // Adasum's dot products are per tensor: nothing to fuse
    for (const TensorRef& tensor : tensors)
      allreduce(OpKind::grouped_allreduce, salt, tensor.input, tensor.output, tensor.count,
                tensor.type, op, scaling);
    return;
  }
  for (int t = 0; t < kDataTypeCount; ++t) {
    const auto type = static_cast<DataType>(t);
    const auto of_type = [&](const TensorRef& tensor) { return tensor.type == type; };
    if (std::none_of(tensors.begin(), tensors.end(), of_type)) continue;
    std::size_t total = 0;
    for (const TensorRef& tensor : tensors)
      if (of_type(tensor)) total += tensor.count;
    comm::check_memory(*group_, OpKind::grouped_allreduce, tensors.data(), total, "the list");
    std::byte* packed = scratch_->own(total * size_of(type));
    // Calls copy(tensor, its place in the packed buffer, its bytes) for each.
    const auto each = [&](auto copy) {
      const auto begin = note ? Clock::now() : Clock::time_point();
      std::byte* place = packed;
      for (const TensorRef& tensor : tensors) {
        if (!of_type(tensor)) continue;
        const std::size_t bytes = tensor.count * size_of(type);
        copy(tensor, place, bytes);
        place += bytes;
      }
      if (note) note(begin, Clock::now());
    };
    each([](const TensorRef& tensor, std::byte* place, std::size_t bytes) {
      comm::copy_bytes(place, tensor.input, bytes);
    });
    allreduce(OpKind::grouped_allreduce, salt, packed, packed, total, type, op, scaling);
    each([](const TensorRef& tensor, const std::byte* place, std::size_t bytes) {
      comm::copy_bytes(tensor.output, place, bytes);
    });
  }
}

std::size_t Communicator::rows_of_rank(std::size_t rows, int rank) const noexcept {
  const auto n = static_cast<std::size_t>(size());
  return rows / n + (static_cast<std::size_t>(rank) < rows % n ? 1 : 0);
}

void Communicator::reducescatter(const void* input, void* output, std::size_t rows,
                                 std::size_t row_size, DataType type, ReduceOp op,
                                 Scaling scaling) {
  constexpr auto kKind = OpKind::reducescatter;
  check_reduction(*group_, kKind, type, op, scaling);
  std::vector<std::size_t> counts(size());
  const std::size_t count = comm::elements_of(*group_, kKind, rows, row_size);
  for (int r = 0; r < size(); ++r) counts[r] = rows_of_rank(rows, r) * row_size;
  comm::check_memory(*group_, kKind, input, count, "input");
  comm::check_memory(*group_, kKind, output, counts[rank()], "output");
  Card card = comm::reduction_card(kKind, input, output, count, type, op, scaling);
  card.row_size = row_size;
  sign(card, Agree::all);

  const std::size_t bytes = card.count * size_of(type);
  const bool eager = bytes <= group_->eager_bytes();
  const Exchanged all = comm::meet(*group_, card, input, eager ? bytes : 0);
  if (card.count == 0) return;
  const Reduction how = comm::reduction_of(type, op, scaling, size());
  if (!eager) return group_->reducescatter(input, output, counts, how);
  const std::size_t place =
      std::accumulate(counts.begin(), counts.begin() + rank(), std::size_t{0}) * size_of(type);
  scratch_->inputs.clear();
  const auto* own = static_cast<const std::byte*>(input);
  for (int r = 0; r < size(); ++r)
    scratch_->inputs.push_back((r == rank() ? own : all.payload(r, bytes)) + place);
  comm::reduce(scratch_->inputs, {&output, 1}, counts[rank()], how);
}

}  // namespace kolo

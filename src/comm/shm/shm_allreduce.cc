// Allreduce through shared memory: each member owns a slice of the elements, reduces it over all
// members in rank order, and everybody gets it from there. One member computes each element, so
// the bits are the same everywhere; the order is fixed, so they are the same in every run.
#include <algorithm>

#include "base/errors.h"
#include "comm/reduce_kernels.h"
#include "comm/shm/shm_group.h"
#include "comm/slices.h"
#include "comm/tree_order.h"

namespace kolo::comm {
void ShmGroup::allreduce(const void* input, void* output, std::size_t count, const Reduction& how) {
  check_usable();
  if (all_inputs_shared() && all_outputs_shared())
    allreduce_in_place(count, how);
  else if (how.tree != nullptr)
    throw_error(ErrorCode::internal, "allreduce in the order of a tree: memory is not shared");
  else
    allreduce_staged(static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count,
                     how);
}

void ShmGroup::allreduce_in_place(std::size_t count, const Reduction& how) {
  last_step_ = step_ + 1;
  reduce_own_part(count, how);
  sync();
}

void ShmGroup::reduce_own_part(std::size_t count, const Reduction& how) {
  const std::size_t element = size_of(how.type);
  const Slice slice = slice_of(count, element, size(), rank());
  // The owner reads a slice of everybody's input and writes it to everybody's output; nobody else
  // touches it, so input and output may be the same.
  const std::size_t offset = slice.first * element;
  inputs_.clear();
  outputs_.clear();
  for (int r = 0; r < size(); ++r) outputs_.push_back(peer_output(r) + offset);
  if (how.tree != nullptr) {
    const std::size_t stride = block_stride(count, how.type);
    for (const TreeOrder::Step& step : how.tree->steps())
      inputs_.push_back(peer_input(step.member) + static_cast<std::size_t>(step.block) * stride +
                        offset);
    return reduce_tree(*how.tree, inputs_, outputs_, slice.count, how);
  }
  for (int r = 0; r < size(); ++r) inputs_.push_back(peer_input(r) + offset);
  reduce(inputs_, outputs_, slice.count, how);
}

// In chunks that stay in the cache. For each chunk c:
//   lay(c)     copy the slices that others own into my stage, signal
//   reduce(c)  when all have laid: my slice over my input and their stages, into my output and,
//              in place, into their stages, signal
//   take(c)    when its owner has reduced: each other slice from my own stage
// Order: lay(0), then for each c: lay(c+1), reduce(c), take(c). The stage of c is free again at
// lay(c+2): take(c) waited for all who use it.
// Writing the result where the input lay moves each cache line twice between the cores. With a
// result area of its own it is four times, as each write must first take the line from its last
// reader.
void ShmGroup::allreduce_staged(const std::byte* input, std::byte* output, std::size_t count,
                                const Reduction& how) {
  const std::size_t element = size_of(how.type);
  const std::size_t chunk = stage_chunk_bytes(count * element) / element;
  const std::size_t chunks = (count + chunk - 1) / chunk;
  const std::uint64_t first_step = step_;
  last_step_ = first_step + 2 * chunks;

  // Signals go lay(0), lay(1), reduce(0), lay(2), reduce(1), …, reduce(last).
  const auto laid = [&](std::size_t c) { return first_step + (c == 0 ? 1 : 2 * c); };
  const auto reduced = [&](std::size_t c) {
    return first_step + (c + 1 < chunks ? 2 * c + 3 : 2 * chunks);
  };
  const auto count_of = [&](std::size_t c) { return std::min(chunk, count - c * chunk); };
  const auto stage_of = [&](int member, std::size_t c) { return seat(member).stage[c & 1]; };

  const auto lay = [&](std::size_t c) {
    const std::byte* from = input + c * chunk * element;
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      const Slice slice = slice_of(count_of(c), element, size(), r);
      copy_bytes(stage_of(rank(), c) + slice.first * element, from + slice.first * element,
                 slice.count * element);
    }
    signal();
  };
  const auto reduce_mine = [&](std::size_t c) {
    wait_all(laid(c));
    const Slice slice = slice_of(count_of(c), element, size(), rank());
    const std::size_t in_chunk = slice.first * element;
    const std::size_t in_all = c * chunk * element + in_chunk;
    inputs_.clear();
    outputs_.assign({output + in_all});
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) {
        inputs_.push_back(input + in_all);
      } else {
        inputs_.push_back(stage_of(r, c) + in_chunk);
        outputs_.push_back(stage_of(r, c) + in_chunk);
      }
    }
    reduce(inputs_, outputs_, slice.count, how);
    signal();
  };
  const auto take = [&](std::size_t c) {
    for (int i = 1; i < size(); ++i) {
      const int r = (rank() + i) % size();
      wait_step(r, reduced(c));
      const Slice slice = slice_of(count_of(c), element, size(), r);
      copy_bytes(output + (c * chunk + slice.first) * element,
                 stage_of(rank(), c) + slice.first * element, slice.count * element);
    }
  };

  lay(0);
  for (std::size_t c = 0; c < chunks; ++c) {
    if (c + 1 < chunks) lay(c + 1);
    reduce_mine(c);
    take(c);
  }
}

}  // namespace kolo::comm

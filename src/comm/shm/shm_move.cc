// Moving data through shared memory: straight from the peers' buffers where these are shared, else
// through the stages, in rounds.
//
// In a round every member lays a piece into its stage, takes a step, waits for the others' step and
// reads their pieces. There are two stages, used in turn: whoever lays round k+2 has waited for
// everybody's step k+1, which comes after their reading of round k. The last rounds need no
// farewell: the next operation begins with a meeting.
#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "comm/reduce_kernels.h"
#include "comm/shm/shm_group.h"

namespace kolo::comm {

void ShmGroup::allgather(const void* input, void* output, std::span<const std::size_t> bytes) {
  check_usable();
  auto* out = static_cast<std::byte*>(output);
  if (all_inputs_shared()) {
    last_step_ = step_ + 1;
    std::size_t place = 0;
    for (int r = 0; r < size(); place += bytes[r++])
      copy_bytes(out + place, r == rank() ? input : peer_input(r), bytes[r]);
    sync();
    return;
  }
  const auto* in = static_cast<const std::byte*>(input);
  const std::size_t longest = *std::max_element(bytes.begin(), bytes.end());
  const std::size_t rounds = (longest + kStageBytes - 1) / kStageBytes;
  last_step_ = step_ + rounds;
  const auto piece = [&](int r, std::size_t start) {
    return bytes[r] > start ? std::min(kStageBytes, bytes[r] - start) : 0;
  };
  for (std::size_t k = 0; k < rounds; ++k) {
    const std::size_t stage = k & 1;
    const std::size_t start = k * kStageBytes;
    copy_bytes(mine().stage[stage], in + start, piece(rank(), start));
    signal();
    const std::uint64_t step = step_;
    std::size_t place = 0;
    for (int r = 0; r < size(); place += bytes[r++]) {
      if (r == rank()) {
        copy_bytes(out + place + start, in + start, piece(r, start));
      } else {
        wait_step(r, step);
        copy_bytes(out + place + start, seat(r).stage[stage], piece(r, start));
      }
    }
  }
}

void ShmGroup::broadcast(void* data, std::size_t bytes, int root) {
  check_usable();
  auto* out = static_cast<std::byte*>(data);
  if (const std::byte* shared = peer_input(root); shared != nullptr) {
    last_step_ = step_ + 1;
    if (rank() != root) copy_bytes(out, shared, bytes);
    sync();
    return;
  }
  const std::size_t chunk = stage_chunk_bytes(bytes);
  const std::size_t rounds = (bytes + chunk - 1) / chunk;
  last_step_ = step_ + rounds;
  for (std::size_t k = 0; k < rounds; ++k) {
    const std::size_t stage = k & 1;
    const std::size_t start = k * chunk;
    const std::size_t length = std::min(chunk, bytes - start);
    if (rank() == root) {
      copy_bytes(mine().stage[stage], out + start, length);
      signal();
      // Before the stage is laid again, two rounds on, all must have read it.
      if (k > 0) wait_all(step_ - 1);
    } else {
      wait_step(root, step_ + 1);
      copy_bytes(out + start, seat(root).stage[stage], length);
      signal();
    }
  }
}

template <class Take>
void ShmGroup::exchange_blocks(const std::byte* input, std::span<const std::size_t> send_bytes,
                               std::span<const std::size_t> recv_bytes, std::size_t unit,
                               Take take) {
  const std::size_t piece =
      kStageBytes / static_cast<std::size_t>(size()) / (64 * unit) * (64 * unit);
  KOLO_CHECK(piece > 0);
  const std::size_t longest = *std::max_element(send_bytes.begin(), send_bytes.end());
  const std::size_t rounds = (agree_on_largest(longest) + piece - 1) / piece;
  last_step_ = step_ + rounds;
  const auto length = [&](std::size_t bytes, std::size_t start) {
    return bytes > start ? std::min(piece, bytes - start) : 0;
  };
  for (std::size_t k = 0; k < rounds; ++k) {
    const std::size_t stage = k & 1;
    const std::size_t start = k * piece;
    std::size_t place = 0;
    for (int r = 0; r < size(); place += send_bytes[r++])
      if (r != rank())
        copy_bytes(mine().stage[stage] + static_cast<std::size_t>(r) * piece, input + place + start,
                   length(send_bytes[r], start));
    sync();
    take(
        start, length(recv_bytes[rank()], start),
        [&](int from) -> const std::byte* {
          return seat(from).stage[stage] + static_cast<std::size_t>(rank()) * piece;
        },
        [&](int from) { return length(recv_bytes[from], start); });
  }
}

void ShmGroup::alltoall(const void* input, std::span<const std::size_t> send_bytes, void* output,
                        std::span<const std::size_t> recv_bytes) {
  check_usable();
  const auto* in = static_cast<const std::byte*>(input);
  auto* out = static_cast<std::byte*>(output);
  const std::size_t my_place =
      std::accumulate(send_bytes.begin(), send_bytes.begin() + rank(), std::size_t{0});
  exchange_blocks(in, send_bytes, recv_bytes, 1,
                  [&](std::size_t start, std::size_t, auto laid_by, auto length_from) {
                    std::size_t place = 0;
                    for (int r = 0; r < size(); place += recv_bytes[r++])
                      if (r != rank()) copy_bytes(out + place + start, laid_by(r), length_from(r));
                  });
  const std::size_t out_place =
      std::accumulate(recv_bytes.begin(), recv_bytes.begin() + rank(), std::size_t{0});
  copy_bytes(out + out_place, in + my_place, send_bytes[rank()]);
}

void ShmGroup::reducescatter(const void* input, void* output, std::span<const std::size_t> counts,
                             const Reduction& how) {
  check_usable();
  const std::size_t element = size_of(how.type);
  const auto* in = static_cast<const std::byte*>(input);
  const std::size_t my_place =
      element * std::accumulate(counts.begin(), counts.begin() + rank(), std::size_t{0});
  const std::size_t total = element * std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  bool in_place = false;  // then a member would overwrite what the others still read
  for (int r = 0; r < size(); ++r) {
    const std::byte* to = peer_output(r);
    const std::byte* from = peer_input(r);
    in_place = in_place || (to != nullptr && from != nullptr && to < from + total &&
                            from < to + counts[r] * element);
  }
  if (all_inputs_shared() && !in_place) {
    last_step_ = step_ + 1;
    inputs_.clear();
    for (int r = 0; r < size(); ++r) inputs_.push_back(peer_input(r) + my_place);
    outputs_.assign({output});
    reduce(inputs_, outputs_, counts[rank()], how);
    sync();
    return;
  }
  std::vector<std::size_t> send(counts.begin(), counts.end());
  for (std::size_t& bytes : send) bytes *= element;
  const std::vector<std::size_t> recv(send.size(), send[rank()]);
  exchange_blocks(in, send, recv, element,
                  [&](std::size_t start, std::size_t length, auto laid_by, auto) {
                    inputs_.clear();
                    for (int r = 0; r < size(); ++r)
                      inputs_.push_back(r == rank() ? in + my_place + start : laid_by(r));
                    outputs_.assign({static_cast<std::byte*>(output) + start});
                    reduce(inputs_, outputs_, length / element, how);
                  });
}

}  // namespace kolo::comm

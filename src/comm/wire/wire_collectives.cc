// The bulk operations of WireGroup. n members, N bytes:
//   allreduce      see wire_reduction.h
//   reducescatter  parts straight to their owner: 1 step, (n-1)/n·N sent
//   allgather      every member sends its block to all: 1 step, (n-1)·(own block) sent
//   alltoall       pairwise: 1 step
//   broadcast      short: root sends to all: 1 step, (n-1)·N sent by the root;
//                  long: root sends each other member one slice, members send theirs on:
//                  2 steps, overlapped, N sent by the root, (n-2)/(n-1)·N by the others
#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/reduce_kernels.h"
#include "comm/tree_order.h"
#include "comm/wire/places.h"
#include "comm/wire/wire_group.h"
#include "comm/wire/wire_reduction.h"

namespace kolo::comm {
namespace {

constexpr std::size_t kScatteredBroadcastBytes = 64 * 1024;
constexpr std::size_t kChunkBytes = 256 * 1024;

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return std::less<>()(a, b + b_bytes) && std::less<>()(b, a + a_bytes);
}

}  // namespace

void WireGroup::allreduce(const void* input, void* output, std::size_t count,
                          const Reduction& how) {
  if (count == 0) return;
  link_->guarded("allreduce", [&] {
    const std::size_t element = size_of(how.type);
    const std::size_t chunk = WireReduction::chunk_for(count, element, size(), /*overlaps=*/false);
    WireReduction reduction(*this, how, count, chunk, block_stride(count, how.type));
    constexpr std::size_t kLag = WireReduction::kLag;
    for (std::size_t k = 0; k < reduction.chunks() + 2 * kLag; ++k) {
      const std::size_t place = k * chunk * element;
      if (k < reduction.chunks())
        reduction.start(k, static_cast<const std::byte*>(input) + place,
                        static_cast<std::byte*>(output) + place);
      if (k >= kLag && k - kLag < reduction.chunks()) reduction.reduce(k - kLag);
      if (k >= 2 * kLag) reduction.finish(k - 2 * kLag);
    }
  });
}

void WireGroup::reducescatter(const void* input, void* output, std::span<const std::size_t> counts,
                              const Reduction& how) {
  const std::size_t element = size_of(how.type);
  const std::vector<std::size_t> place = places(counts);
  const auto* in = static_cast<const std::byte*>(input);
  auto* out = static_cast<std::byte*>(output);
  const std::size_t mine = counts[rank()];
  // Results must not be written over inputs that are still to be sent.
  std::vector<std::byte> aside;
  if (overlap(in, place.back() * element, out, mine * element)) {
    aside.resize(mine * element);
    out = aside.data();
  }
  link_->guarded("reducescatter", [&] {
    const std::size_t chunk = std::max<std::size_t>(1, kChunkBytes / element);
    const auto chunks_of = [&](int r) { return (counts[r] + chunk - 1) / chunk; };
    const auto count_of = [&](int r, std::size_t k) {
      return std::min(chunk, counts[r] - k * chunk);
    };
    const auto n = static_cast<std::size_t>(size());
    constexpr std::size_t kSlots = 3;
    std::byte* parts = parts_.get(kSlots * n * chunk * element);
    const auto part = [&](std::size_t k, int r) {
      return parts + (k % kSlots * n + static_cast<std::size_t>(r)) * chunk * element;
    };
    std::vector<Tickets> arriving(kSlots);
    Tickets sent;
    const auto expect = [&](std::size_t k) {
      if (k >= chunks_of(rank())) return;
      for (int r = 0; r < size(); ++r)
        if (r != rank())
          arriving[k % kSlots].push_back(
              post_recv(r, kPart, part(k, r), count_of(rank(), k) * element));
    };
    for (std::size_t k = 0; k < kSlots; ++k) expect(k);
    std::size_t most = 0;
    for (int r = 0; r < size(); ++r) most = std::max(most, chunks_of(r));
    std::vector<const void*> inputs;
    for (std::size_t k = 0; k < most; ++k) {
      for (int i = 1; i < size(); ++i) {
        const int to = (rank() + i) % size();
        if (k < chunks_of(to))
          sent.push_back(post_send(to, kPart, in + (place[to] + k * chunk) * element,
                                   count_of(to, k) * element));
      }
      if (k >= chunks_of(rank())) continue;
      wait_all(arriving[k % kSlots]);
      inputs.clear();
      for (int r = 0; r < size(); ++r)
        inputs.push_back(r == rank() ? in + (place[r] + k * chunk) * element : part(k, r));
      void* const target = out + k * chunk * element;
      comm::reduce(inputs, {&target, 1}, count_of(rank(), k), how);
      expect(k + kSlots);
    }
    wait_all(sent);
  });
  if (!aside.empty()) std::memcpy(output, aside.data(), aside.size());
}

void WireGroup::allgather(const void* input, void* output, std::span<const std::size_t> bytes) {
  const std::vector<std::size_t> place = places(bytes);
  auto* out = static_cast<std::byte*>(output);
  if (input != out + place[rank()] && bytes[rank()] != 0)
    copy_bytes(out + place[rank()], input, bytes[rank()]);
  std::vector<Block> outgoing, incoming;
  for (int i = 1; i < size(); ++i) {
    const int to = (rank() + i) % size();
    const int from = (rank() + size() - i) % size();
    outgoing.push_back({to, out + place[rank()], bytes[rank()]});
    incoming.push_back({from, out + place[from], bytes[from]});
  }
  link_->guarded("allgather", [&] { move(outgoing, incoming); });
}

void WireGroup::alltoall(const void* input, std::span<const std::size_t> send_bytes, void* output,
                         std::span<const std::size_t> recv_bytes) {
  const std::vector<std::size_t> from_place = places(send_bytes), to_place = places(recv_bytes);
  auto* in = static_cast<std::byte*>(const_cast<void*>(input));  // only read
  auto* out = static_cast<std::byte*>(output);
  if (send_bytes[rank()] != 0)
    copy_bytes(out + to_place[rank()], in + from_place[rank()], send_bytes[rank()]);
  std::vector<Block> outgoing, incoming;
  for (int i = 1; i < size(); ++i) {
    const int to = (rank() + i) % size();
    const int from = (rank() + size() - i) % size();
    outgoing.push_back({to, in + from_place[to], send_bytes[to]});
    incoming.push_back({from, out + to_place[from], recv_bytes[from]});
  }
  link_->guarded("alltoall", [&] { move(outgoing, incoming); });
}

void WireGroup::broadcast(void* data, std::size_t bytes, int root) {
  if (bytes == 0) return;
  auto* memory = static_cast<std::byte*>(data);
  link_->guarded("broadcast", [&] {
    if (size() > 2 && bytes > kScatteredBroadcastBytes)
      return broadcast_scattered(memory, bytes, root);
    if (rank() != root) return wait(post_recv(root, kBlock, memory, bytes));
    Tickets tickets;
    for (int i = 1; i < size(); ++i)
      tickets.push_back(post_send((root + i) % size(), kBlock, memory, bytes));
    wait_all(tickets);
  });
}

void WireGroup::broadcast_scattered(std::byte* data, std::size_t bytes, int root) {
  // Slice i belongs to member root + 1 + i.
  const auto slices = static_cast<std::size_t>(size() - 1);
  const std::size_t slice_bytes = (bytes + slices - 1) / slices;
  const auto member_of = [&](std::size_t i) { return (root + 1 + static_cast<int>(i)) % size(); };
  const auto start_of = [&](std::size_t i) { return std::min(bytes, i * slice_bytes); };
  const auto chunks_of = [&](std::size_t i) {
    return (start_of(i + 1) - start_of(i) + kChunkBytes - 1) / kChunkBytes;
  };
  const auto chunk_at = [&](std::size_t i, std::size_t k) {
    return data + start_of(i) + k * kChunkBytes;
  };
  const auto chunk_bytes = [&](std::size_t i, std::size_t k) {
    return std::min(kChunkBytes, start_of(i + 1) - start_of(i) - k * kChunkBytes);
  };
  Tickets tickets;
  if (rank() == root) {
    for (std::size_t k = 0; k < chunks_of(0); ++k)
      for (std::size_t i = 0; i < slices; ++i)
        if (k < chunks_of(i))
          tickets.push_back(post_send(member_of(i), kBlock, chunk_at(i, k), chunk_bytes(i, k)));
    return wait_all(tickets);
  }
  const auto mine = static_cast<std::size_t>((rank() - root - 1 + size()) % size());
  Tickets from_root;
  for (std::size_t i = 0; i < slices; ++i)
    for (std::size_t k = 0; k < chunks_of(i); ++k) {
      if (i == mine)
        from_root.push_back(post_recv(root, kBlock, chunk_at(i, k), chunk_bytes(i, k)));
      else
        tickets.push_back(post_recv(member_of(i), kBlock, chunk_at(i, k), chunk_bytes(i, k)));
    }
  for (std::size_t k = 0; k < from_root.size(); ++k) {
    wait(from_root[k]);
    for (std::size_t i = 0; i < slices; ++i)
      if (i != mine)
        tickets.push_back(post_send(member_of(i), kBlock, chunk_at(mine, k), chunk_bytes(mine, k)));
  }
  wait_all(tickets);
}

}  // namespace kolo::comm

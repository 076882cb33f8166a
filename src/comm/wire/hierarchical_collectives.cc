// The bulk operations of HierarchicalGroup.
#include <algorithm>
#include <cstring>

#include "comm/reduce_kernels.h"
#include "comm/wire/hierarchical_group.h"
#include "comm/wire/places.h"
#include "comm/wire/wire_reduction.h"

namespace kolo::comm {
namespace {

/// A chunk's slices, one per lane, begin on cache lines of any type.
constexpr std::size_t kSliceUnit = 64;

}  // namespace

void HierarchicalGroup::meet_locally(const void* input, const void* output) {
  Card card;
  card.signature = 1;
  card.input = reinterpret_cast<std::uint64_t>(input);
  card.output = reinterpret_cast<std::uint64_t>(output);
  local_->exchange(card, nullptr, 0);
}

void HierarchicalGroup::local_broadcast(void* data, std::size_t bytes, int local_root) {
  if (is_alone() || bytes == 0) return;
  locally([&] {
    meet_locally(data, data);
    local_->broadcast(data, bytes, local_root);
  });
}

// --- allreduce -----------------------------------------------------------------------------------
//
// The elements pass in chunks, each cut into one slice per lane. For chunk k:
//   gather   local reducescatter: rank l of this host gets the host's sum of slice l
//   across   the lanes' allreduce of their slices (WireReduction)
//   spread   local allgather of the finished slices
// Order on every rank: gather(k), across.start(k), across.reduce(k-1), across.finish(k-2),
// spread(k-2): while the wire carries one chunk, the host works on its neighbours.
//
// 16-bit floats are widened chunk by chunk before gather, the finished slice narrowed before
// spread.
void HierarchicalGroup::allreduce(const void* input, void* output, std::size_t count,
                                  const Reduction& how) {
  if (count == 0) return;
  if (how.tree != nullptr)
    return guarded("allreduce", [&] { flat_->allreduce(input, output, count, how); });
  constexpr std::size_t kLag = WireReduction::kLag;
  constexpr std::size_t kSlots = 2 * kLag + 1;
  const auto* in = static_cast<const std::byte*>(input);
  auto* out = static_cast<std::byte*>(output);
  const std::size_t element = size_of(how.type);
  const Halves halves = halves_of(how);
  const DataType sum_type = halves.across_hosts.type;
  const std::size_t sum_element = size_of(sum_type);
  const auto lanes = static_cast<std::size_t>(lanes_);
  const auto hosts = static_cast<int>(hosts_.size());

  const std::size_t per_lane = (count + lanes - 1) / lanes;
  std::size_t lane_chunk =
      WireReduction::chunk_for(per_lane, sum_element, hosts, /*overlaps=*/true);
  lane_chunk = std::min(lane_chunk, per_lane);
  lane_chunk = (lane_chunk + kSliceUnit - 1) / kSliceUnit * kSliceUnit;
  const std::size_t chunk = lane_chunk * lanes;
  const std::size_t chunks = (count + chunk - 1) / chunk;
  const auto count_of = [&](std::size_t k) { return std::min(chunk, count - k * chunk); };
  const auto slice_of = [&](std::size_t k, std::size_t lane) {
    const std::size_t start = std::min(count_of(k), lane * lane_chunk);
    return std::min(count_of(k), start + lane_chunk) - start;
  };

  const auto my_lane = static_cast<std::size_t>(local_rank_);
  std::size_t mine = 0;  // elements of my lane
  if (lane_ != nullptr)
    for (std::size_t k = 0; k < chunks; ++k) mine += slice_of(k, my_lane);

  guarded("allreduce", [&] {
    // A slot holds a slice's sum and, behind it, the narrowed result.
    const bool narrows = sum_type != how.type;
    const std::size_t slot_bytes = lane_chunk * (sum_element + (narrows ? element : 0));
    std::byte* const partial = partial_.get(kSlots * slot_bytes);
    const auto slot = [&](std::size_t k) { return partial + k % kSlots * slot_bytes; };
    std::optional<WireReduction> across;
    if (mine != 0) across.emplace(*lane_, halves.across_hosts, mine, lane_chunk);
    const auto crosses = [&](std::size_t k) { return across && k < across->chunks(); };
    std::vector<std::size_t> slices(neighbours().size());

    const auto gather = [&](std::size_t k) {
      const void* from = in + k * chunk * element;
      if (narrows) {
        void* const wide = wide_.get(chunk * sum_element);
        comm::reduce({&from, 1}, how.type, {&wide, 1}, sum_type, count_of(k), Reduction{});
        from = wide;
      }
      if (is_alone()) {
        void* const to = slot(k);
        comm::reduce({&from, 1}, {&to, 1}, count_of(k), halves.within_host);
        return;
      }
      for (std::size_t i = 0; i < slices.size(); ++i) slices[i] = i < lanes ? slice_of(k, i) : 0;
      locally([&] {
        meet_locally(from, nullptr);
        local_->reducescatter(from, slot(k), slices, halves.within_host);
      });
    };
    const auto spread = [&](std::size_t k) {
      const void* from = slot(k);
      if (narrows) {
        void* const narrow = slot(k) + lane_chunk * sum_element;
        if (lane_ != nullptr)
          comm::reduce({&from, 1}, sum_type, {&narrow, 1}, how.type, slice_of(k, my_lane),
                       Reduction{});
        from = narrow;
      }
      std::byte* const to = out + k * chunk * element;
      if (is_alone()) return copy_bytes(to, from, count_of(k) * element);
      for (std::size_t i = 0; i < slices.size(); ++i)
        slices[i] = i < lanes ? slice_of(k, i) * element : 0;
      locally([&] {
        meet_locally(from, to);
        local_->allgather(from, to, slices);
      });
    };

    for (std::size_t k = 0; k < chunks + 2 * kLag; ++k) {
      if (k < chunks) {
        gather(k);
        if (crosses(k)) across->start(k, slot(k), slot(k));
      }
      if (k >= kLag && crosses(k - kLag)) across->reduce(k - kLag);
      if (k < 2 * kLag) continue;
      if (crosses(k - 2 * kLag)) across->finish(k - 2 * kLag);
      spread(k - 2 * kLag);
    }
  });
}

void HierarchicalGroup::reducescatter(const void* input, void* output,
                                      std::span<const std::size_t> counts, const Reduction& how) {
  const std::vector<std::size_t> place = places(counts);
  const std::size_t element = size_of(how.type);
  std::byte* all = reduced_.get(place.back() * element);
  allreduce(input, all, place.back(), how);
  copy_bytes(output, all + place[rank()] * element, counts[rank()] * element);
}

// --- moving data ---------------------------------------------------------------------------------

void HierarchicalGroup::broadcast(void* data, std::size_t bytes, int root) {
  if (bytes == 0) return;
  auto* memory = static_cast<std::byte*>(data);
  const int root_host = topology_.host_of(root);
  const auto lanes = static_cast<std::size_t>(lanes_);
  const std::size_t slice =
      ((bytes + lanes - 1) / lanes + kSliceUnit - 1) / kSliceUnit * kSliceUnit;
  std::vector<std::size_t> slices(neighbours().size(), 0);
  for (std::size_t i = 0; i < lanes; ++i)
    slices[i] = std::min(bytes, (i + 1) * slice) - std::min(bytes, i * slice);
  guarded("broadcast", [&] {
    if (host_ == root_host) local_broadcast(data, bytes, local_index(root));
    const std::size_t mine = lane_ != nullptr ? slices[local_rank_] : 0;
    std::byte* const my_slice =
        memory + std::min(bytes, slice * static_cast<std::size_t>(local_rank_));
    if (mine != 0) lane_->broadcast(my_slice, mine, root_host);
    if (host_ != root_host && !is_alone())
      locally([&] {
        meet_locally(nullptr, data);
        local_->allgather(my_slice, data, slices);
      });
  });
}

void HierarchicalGroup::allgather(const void* input, void* output,
                                  std::span<const std::size_t> bytes) {
  const std::vector<std::size_t> place = places(bytes);
  auto* out = static_cast<std::byte*>(output);
  if (input != out + place[rank()] && bytes[rank()] != 0)
    copy_bytes(out + place[rank()], input, bytes[rank()]);
  // On each other host one rank takes a block in; the ranks of a host take turns.
  const auto taker = [&](std::size_t host, int member) {
    return static_cast<std::size_t>(member) % hosts_[host].size();
  };
  std::vector<WireGroup::Block> outgoing, incoming;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (static_cast<int>(host) == host_) continue;
    outgoing.push_back({hosts_[host][taker(host, rank())], out + place[rank()], bytes[rank()]});
    for (const int member : hosts_[host])
      if (taker(host_, member) == static_cast<std::size_t>(local_rank_))
        incoming.push_back({member, out + place[member], bytes[member]});
  }
  guarded("allgather", [&] {
    flat_->move(outgoing, incoming);
    for (int member = 0; member < size(); ++member) {
      const int near = local_index(member);
      local_broadcast(out + place[member], bytes[member],
                      near >= 0 ? near : static_cast<int>(taker(host_, member)));
    }
  });
}

void HierarchicalGroup::alltoall(const void* input, std::span<const std::size_t> send_bytes,
                                 void* output, std::span<const std::size_t> recv_bytes) {
  const std::vector<std::size_t> from_place = places(send_bytes), to_place = places(recv_bytes);
  auto* in = static_cast<std::byte*>(const_cast<void*>(input));  // only read
  auto* out = static_cast<std::byte*>(output);
  std::vector<WireGroup::Block> outgoing, incoming;
  for (int i = 1; i < size(); ++i) {
    const int to = (rank() + i) % size();
    const int from = (rank() + size() - i) % size();
    if (local_index(to) < 0) outgoing.push_back({to, in + from_place[to], send_bytes[to]});
    if (local_index(from) < 0) incoming.push_back({from, out + to_place[from], recv_bytes[from]});
  }
  // The ranks of a host need not follow each other, but their blocks must.
  std::vector<std::size_t> near_send, near_recv;
  for (const int member : neighbours()) {
    near_send.push_back(send_bytes[member]);
    near_recv.push_back(recv_bytes[member]);
  }
  const std::vector<std::size_t> near_from = places(near_send), near_to = places(near_recv);
  std::vector<std::byte> packed(near_from.back()), received(near_to.back());
  for (std::size_t i = 0; i < neighbours().size(); ++i)
    if (near_send[i] != 0)
      copy_bytes(packed.data() + near_from[i], in + from_place[neighbours()[i]], near_send[i]);
  guarded("alltoall", [&] {
    locally([&] {
      meet_locally(nullptr, nullptr);
      local_->alltoall(packed.data(), near_send, received.data(), near_recv);
    });
    flat_->move(outgoing, incoming);
  });
  for (std::size_t i = 0; i < neighbours().size(); ++i)
    if (near_recv[i] != 0)
      copy_bytes(out + to_place[neighbours()[i]], received.data() + near_to[i], near_recv[i]);
}

}  // namespace kolo::comm

#include "comm/wire/hierarchical_group.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/errors.h"

namespace kolo::comm {
namespace {

/// In front of what a leader tells the others about its host.
struct BlobHead {
  std::uint64_t bytes = 0;  ///< of the entries
  std::uint64_t reserved = 0;
};
/// The ranks of a host show each other less than this at a time.
constexpr std::size_t kBlobBytes = 16 * 1024;
static_assert(kBlobBytes <= Messenger::kSmallBytes);

std::vector<std::vector<int>> hosts_of(const Topology& topology) {
  std::vector<std::vector<int>> hosts;
  for (int host = 0; host < topology.host_count(); ++host)
    hosts.push_back(topology.ranks_on_host(host));
  return hosts;
}

}  // namespace

std::unique_ptr<Group> make_hierarchical_group(std::unique_ptr<Group> local,
                                               const Topology& topology, ConnectWire connect,
                                               WireOptions options) {
  if (topology.host_count() == 1) return local;
  if (topology.host_count() == topology.size())
    return make_flat_wire_group(topology, std::move(connect), std::move(options));
  if (options.world_ranks.empty()) {
    options.world_ranks.resize(static_cast<std::size_t>(topology.size()));
    std::iota(options.world_ranks.begin(), options.world_ranks.end(), 0);
  }
  return std::make_unique<HierarchicalGroup>(std::move(local), topology, std::move(connect),
                                             options);
}

HierarchicalGroup::HierarchicalGroup(std::unique_ptr<Group> local, const Topology& topology,
                                     ConnectWire connect, const WireOptions& options)
    : Group(topology.rank(), topology.size()),
      local_(std::move(local)),
      description_(fmt::format("{}+{}", topology.local_size() == 1 ? "shm" : local_->describe(),
                               options.name)),
      topology_(topology),
      connect_(std::move(connect)),
      hosts_(hosts_of(topology)),
      host_(topology.host_of(topology.rank())),
      local_rank_(topology.local_rank()),
      table_(options.memory),
      partial_(options.memory) {
  KOLO_CHECK(local_->size() == topology.local_size() && local_->rank() == local_rank_);
  link_ = std::make_shared<WireLink>(connect_(options.world_ranks, options.key), rank(), options);
  flat_ = std::make_unique<WireGroup>(link_, connect_);

  std::size_t smallest = hosts_[0].size(), largest = 0;
  for (const auto& host : hosts_) {
    smallest = std::min(smallest, host.size());
    largest = std::max(largest, host.size());
  }
  lanes_ = static_cast<int>(smallest);
  std::vector<int> leaders, lane;
  for (const auto& host : hosts_) {
    leaders.push_back(host[0]);
    if (local_rank_ < lanes_) lane.push_back(host[local_rank_]);
  }
  if (is_leader()) leaders_ = std::make_unique<WireGroup>(link_, leaders);
  if (local_rank_ < lanes_) {
    lane_ = std::make_unique<WireGroup>(link_, lane);
    // Lanes share the link of their host. Between two hosts one trip moves no more bytes than two.
    if (lane_->size() > 2)
      lane_->set_one_trip_bytes(lane_->one_trip_bytes() / static_cast<std::size_t>(lanes_));
  }

  // What fits in every host's local exchange and, all ranks of a host together, across.
  const std::size_t across = (kBlobBytes - sizeof(BlobHead)) / largest;
  std::uint64_t mine = is_alone() ? across : std::min(across, local_->eager_bytes());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  link_->guarded("connect", [&] {
    flat_->exchange_rows(&mine, sizeof mine, all.data(), sizeof mine, link_->deadline());
  });
  const std::size_t entry = *std::min_element(all.begin(), all.end());
  KOLO_CHECK(entry >= sizeof(Entry) + 48);
  eager_bytes_ = (entry - sizeof(Entry)) / 16 * 16;
}

HierarchicalGroup::~HierarchicalGroup() = default;

int HierarchicalGroup::local_index(int member) const {
  const auto& ranks = neighbours();
  const auto it = std::lower_bound(ranks.begin(), ranks.end(), member);
  return it != ranks.end() && *it == member ? static_cast<int>(it - ranks.begin()) : -1;
}

// --- meeting -------------------------------------------------------------------------------------

Exchanged HierarchicalGroup::exchange(const Card& card, const void* payload, std::size_t bytes) {
  KOLO_CHECK(bytes <= eager_bytes_);
  guarded(to_string(card.kind).data(), [&] {
    std::byte* blob = blobs_.get((1 + hosts_.size()) * kBlobBytes);
    std::size_t table_bytes = 0;
    if (is_leader()) {
      auto& head = *reinterpret_cast<BlobHead*>(blob);
      head = {gather_entries(card, payload, bytes, blob + sizeof(BlobHead)), 0};
      table_bytes = swap_blobs(head.bytes);
    } else {
      gather_entries(card, payload, bytes, nullptr);
    }
    hand_out(table_bytes);
  });

  bool agreed = true;
  for (int r = 0; r < size(); ++r)
    agreed =
        agreed && reinterpret_cast<const Card*>(entries_[r] + offsetof(Entry, card))->signature ==
                      card.signature;
  constexpr std::size_t kPayload = sizeof(Entry);
  return {entries_.data(),
          {.card = offsetof(Entry, card),
           .small = kPayload,
           .small_limit = kBlobBytes,
           .large = kPayload},
          agreed};
}

/// The entries of this host's ranks, one behind the other, at `blob` (if not null).
std::size_t HierarchicalGroup::gather_entries(const Card& card, const void* payload,
                                              std::size_t bytes, std::byte* blob) {
  alignas(16) std::byte mine[kBlobBytes];
  Entry& entry = *reinterpret_cast<Entry*>(mine);
  entry = {bytes, 0, card};
  if (bytes != 0) std::memcpy(mine + sizeof(Entry), payload, bytes);
  const std::size_t length = entry_bytes(bytes);
  if (is_alone()) {
    std::memcpy(blob, mine, length);
    return length;
  }
  std::size_t total = 0;
  locally([&] {
    Card outer;
    outer.signature = 1;
    outer.kind = card.kind;
    const Exchanged all = local_->exchange(outer, mine, length);
    if (blob == nullptr) return;
    for (int i = 0; i < local_->size(); ++i) {
      // Always a long payload: an entry is larger than what goes into the short place.
      const std::byte* from = all.payload(i, sizeof(Entry));
      const std::size_t size_of_entry = entry_bytes(reinterpret_cast<const Entry*>(from)->bytes);
      std::memcpy(blob + total, from, size_of_entry);
      total += size_of_entry;
    }
  });
  return total;
}

/// Leaders: swaps blobs_[0] with the other hosts and lays all entries into table_, hosts in order.
/// Returns the length.
std::size_t HierarchicalGroup::swap_blobs(std::size_t bytes) {
  std::byte* mine = blobs_.get((1 + hosts_.size()) * kBlobBytes);
  std::byte* rows = mine + kBlobBytes;
  leaders_->exchange_rows(mine, sizeof(BlobHead) + bytes, rows, kBlobBytes, link_->deadline());
  const auto head_of = [&](std::size_t host) {
    return reinterpret_cast<const BlobHead*>(rows + host * kBlobBytes);
  };
  std::size_t total = 0;
  for (std::size_t host = 0; host < hosts_.size(); ++host) total += head_of(host)->bytes;
  std::byte* table = table_.get(total);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    std::memcpy(table, head_of(host) + 1, head_of(host)->bytes);
    table += head_of(host)->bytes;
  }
  return total;
}

/// The leader's table to all ranks of the host; then everybody finds the entries in it.
void HierarchicalGroup::hand_out(std::size_t bytes) {
  if (!is_alone()) {
    locally([&] {
      Card card;
      card.signature = 1;
      card.count = bytes;
      std::byte* table = is_leader() ? table_.get(bytes) : nullptr;
      card.input = reinterpret_cast<std::uint64_t>(table);
      const std::size_t eager = local_->eager_bytes();
      const Exchanged all =
          local_->exchange(card, table, is_leader() && bytes <= eager ? bytes : 0);
      if (is_leader() && bytes <= eager) return;
      bytes = all.card(0).count;
      if (!is_leader()) table = table_.get(bytes);
      if (bytes <= eager)
        std::memcpy(table, all.payload(0, bytes), bytes);
      else
        local_->broadcast(table, bytes, 0);
    });
  }
  entries_.resize(static_cast<std::size_t>(size()));
  const std::byte* at = table_.get(bytes);
  for (const auto& ranks : hosts_)
    for (const int member : ranks) {
      entries_[member] = at;
      at += entry_bytes(reinterpret_cast<const Entry*>(at)->bytes);
    }
}

// --- point to point and subsets ------------------------------------------------------------------

void HierarchicalGroup::send(int to, std::span<const std::byte> header, const void* data,
                             std::size_t bytes) {
  if (const int near = local_index(to); near >= 0)
    guarded("send", [&] { locally([&] { local_->send(near, header, data, bytes); }); });
  else
    guarded("send", [&] { flat_->send(to, header, data, bytes); });
}

std::size_t HierarchicalGroup::recv_header(int from, std::span<std::byte> header) {
  const int near = local_index(from);
  std::size_t bytes = 0;
  guarded("recv", [&] {
    if (near < 0)
      bytes = flat_->recv_header(from, header);
    else
      locally([&] { bytes = local_->recv_header(near, header); });
  });
  return bytes;
}

void HierarchicalGroup::recv_body(int from, void* data, std::size_t bytes) {
  if (const int near = local_index(from); near >= 0)
    guarded("recv", [&] { locally([&] { local_->recv_body(near, data, bytes); }); });
  else
    guarded("recv", [&] { flat_->recv_body(from, data, bytes); });
}

std::unique_ptr<Group> HierarchicalGroup::subset(const std::vector<int>& chosen) {
  WireOptions options = link_->options();
  options.key = fmt::format("{}.{}", options.key, subsets_++);
  options.world_ranks.clear();
  std::vector<int> near;
  for (const int member : chosen) {
    options.world_ranks.push_back(link_->options().world_ranks[member]);
    if (const int index = local_index(member); index >= 0) near.push_back(index);
  }
  std::unique_ptr<Group> local;
  guarded("subset", [&] {
    locally([&] {
      if (!near.empty()) local = local_->subset(near);
    });
  });
  if (local == nullptr) return nullptr;
  return make_hierarchical_group(std::move(local), topology_.subset(chosen), connect_,
                                 std::move(options));
}

// --- memory --------------------------------------------------------------------------------------

HierarchicalGroup::Stage::~Stage() {
  if (shared_ != nullptr) home_->release(shared_);
}

std::byte* HierarchicalGroup::Stage::get(std::size_t bytes) {
  if (home_ == nullptr) return heap_.get(bytes);
  if (bytes > bytes_) {
    if (shared_ != nullptr) home_->release(std::exchange(shared_, nullptr));
    bytes_ = 0;
    const std::size_t room = std::max<std::size_t>(bytes + bytes / 2, 64 * 1024);
    shared_ = static_cast<std::byte*>(home_->allocate(room));
    bytes_ = room;
  }
  return shared_;
}

}  // namespace kolo::comm

// Four groups work together: local_ (the ranks of this host), leaders_ (the first rank of each
// host, for meetings), lane_ (the l-th rank of each host, for data) and flat_ (all ranks, for point
// to point messages). The last three share one link. The limits of what a meeting carries are
// agreed upon at the beginning, as hosts may have different numbers of ranks.
#include "comm/wire/hierarchical_group.h"

#include <algorithm>
#include <numeric>

#include "base/errors.h"

namespace kolo::comm {
namespace {

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
  const std::size_t across = kEntriesBytes / largest;
  std::uint64_t mine = is_alone() ? across : std::min(across, local_->eager_bytes());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  link_->guarded("connect", [&] {
    const std::vector<Messenger::SmallMessage> same(all.size(), std::as_bytes(std::span(&mine, 1)));
    flat_->exchange_rows(same, all.data(), sizeof mine);
  });
  const std::size_t entry = *std::min_element(all.begin(), all.end());
  KOLO_CHECK(entry >= sizeof(Entry) + 48);
  eager_bytes_ = (entry - sizeof(Entry)) / 16 * 16;

  // Beside a sum the entries are bare.
  const std::size_t beside_sum = sizeof(MessageHead) + largest * entry_bytes(0);
  carried_bytes_ = std::min(WireGroup::most_sent_eagerly(static_cast<int>(hosts_.size())),
                            (Messenger::kSmallBytes - beside_sum) / 64 * 64);
  message_bytes_ =
      (std::max(sizeof(MessageHead) + kEntriesBytes, beside_sum + carried_bytes_) + 63) / 64 * 64;
  KOLO_CHECK(message_bytes_ <= Messenger::kSmallBytes);
}

HierarchicalGroup::~HierarchicalGroup() = default;

int HierarchicalGroup::local_index(int member) const {
  const auto& ranks = neighbours();
  const auto it = std::lower_bound(ranks.begin(), ranks.end(), member);
  return it != ranks.end() && *it == member ? static_cast<int>(it - ranks.begin()) : -1;
}

void HierarchicalGroup::give_up(int member) noexcept {
  if (const int near = local_index(member); near >= 0 && local_ != nullptr) local_->give_up(near);
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
  std::optional<Error> no_place;
  guarded("subset", [&] {
    locally([&] {
      try {
        if (!near.empty()) local = local_->subset(near);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::peer_lost) throw;
        no_place = error;
      }
    });
  });
  check_that_all_have_place(no_place);
  if (local == nullptr) return nullptr;
  return make_hierarchical_group(std::move(local), topology_.subset(chosen), connect_,
                                 std::move(options));
}

/// A host on which a part of a group could not be made says so before the others begin to wait for
/// it.
void HierarchicalGroup::check_that_all_have_place(const std::optional<Error>& mine) {
  Card card;
  card.signature = 1;
  card.kind = OpKind::subset;
  const bool has_none = mine.has_value();
  const Exchanged all = exchange(card, &has_none, sizeof has_none);
  if (mine) throw *mine;
  for (int member = 0; member < size(); ++member)
    if (all.payload(member, sizeof has_none)[0] != std::byte{0})
      throw_error(ErrorCode::unavailable,
                  "subset: the host of rank {} has no shared memory left; free buffers there, or "
                  "raise KOLO_SHARED_MEMORY_BYTES",
                  link_->options().world_ranks[member]);
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
    try {
      shared_ = static_cast<std::byte*>(home_->allocate(room));
    } catch (const Error&) {
      // The others are in the same operation and would wait in vain: it goes on more slowly.
      home_.reset();
      return heap_.get(bytes);
    }
    bytes_ = room;
  }
  return shared_;
}

}  // namespace kolo::comm

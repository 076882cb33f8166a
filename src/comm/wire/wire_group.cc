// Meetings send the card and a small payload to every member in one exchange of the messenger. Up
// to 64 KiB sent by each member, data travels with the meeting or in one trip; beyond that the bulk
// operations of wire_collectives.cc and wire_reduction.cc take over.
#include "comm/wire/wire_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "base/errors.h"
#include "comm/reduce_kernels.h"
#include "comm/slices.h"

namespace kolo::comm {
namespace {

constexpr std::size_t kPayloadOffset = sizeof(Card);
constexpr std::size_t kMostSentEagerly = 64 * 1024;
constexpr std::size_t kLeastEager = 1024;

/// Up to so many bytes from a member in all one trip less counts more than the bytes. Two members
/// send the same either way: each only reduces twice as much.
constexpr std::size_t kOneTripBytesOfTwo = 4 * 1024 * 1024;
constexpr std::size_t kOneTripBytes = 64 * 1024;

/// In front of every message of send().
struct Envelope {
  std::uint64_t bytes = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t reserved = 0;
  std::byte header[32] = {};
};

/// A send up to this does not wait for its receiver.
constexpr std::size_t kCopiedSendBytes = 64 * 1024;

constexpr std::chrono::seconds kLastSends{2};

std::vector<int> all_members(const WireLink& link) {
  std::vector<int> members(static_cast<std::size_t>(link.size()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

int index_of(const std::vector<int>& members, int member) {
  return static_cast<int>(std::find(members.begin(), members.end(), member) - members.begin());
}

}  // namespace

ConnectWire make_connect_wire(std::shared_ptr<Bootstrap> bootstrap,
                              std::shared_ptr<Liveness> liveness, const WirePlugin& plugin,
                              std::string network_interface, std::chrono::milliseconds timeout) {
  return [bootstrap = std::move(bootstrap), liveness = std::move(liveness), &plugin,
          network_interface = std::move(network_interface),
          timeout](const std::vector<int>& world_ranks, const std::string& key) {
    WireSetup setup;
    setup.world_ranks = world_ranks;
    setup.me = index_of(world_ranks, bootstrap->topology().rank());
    setup.when_lost = [&](const std::function<void()>& action) -> std::shared_ptr<void> {
      if (liveness == nullptr) return nullptr;
      const int listener = liveness->listen([&world_ranks, action](const Departure& departure) {
        if (std::ranges::find(world_ranks, departure.rank) != world_ranks.end()) action();
      });
      return {nullptr, [&, listener](void*) { liveness->unlisten(listener); }};
    };
    setup.network_interface = network_interface;
    setup.timeout = timeout;
    int meeting = 0;
    setup.allgather = [&](const std::string& mine) {
      return bootstrap->allgather(fmt::format("wire/{}/{}", key, meeting++), world_ranks, mine,
                                  Deadline::after(timeout));
    };
    return plugin.connect(setup);
  };
}

std::unique_ptr<Group> make_flat_wire_group(const Topology& topology, ConnectWire connect,
                                            WireOptions options) {
  if (topology.size() == 1) return make_solo_group();
  if (options.world_ranks.empty()) {
    options.world_ranks.resize(static_cast<std::size_t>(topology.size()));
    std::iota(options.world_ranks.begin(), options.world_ranks.end(), 0);
  }
  auto messenger = connect(options.world_ranks, options.key);
  auto link = std::make_shared<WireLink>(std::move(messenger), topology.rank(), options);
  return std::make_unique<WireGroup>(std::move(link), std::move(connect));
}

WireGroup::WireGroup(std::shared_ptr<WireLink> link, ConnectWire connect)
    : Group(link->me(), link->size()),
      link_(std::move(link)),
      members_(all_members(*link_)),
      connect_(std::move(connect)),
      one_trip_bytes_(size() == 2 ? kOneTripBytesOfTwo : kOneTripBytes) {}

WireGroup::WireGroup(std::shared_ptr<WireLink> link, std::vector<int> members)
    : Group(index_of(members, link->me()), static_cast<int>(members.size())),
      link_(std::move(link)),
      members_(std::move(members)),
      one_trip_bytes_(size() == 2 ? kOneTripBytesOfTwo : kOneTripBytes) {}

WireGroup::~WireGroup() {
  // Nobody is there to receive the last sends, and one that failed has no ticket.
  if (link_->is_broken()) return;
  try {
    const Deadline deadline = Deadline::after(kLastSends);
    for (const Copy& copy : copies_) link_->messenger().wait(copy.ticket, deadline);
  } catch (const Error&) {
    // They were lost on the way. The messenger has failed and touches them no more.
  }
}

// --- messages ------------------------------------------------------------------------------------

Messenger::Ticket WireGroup::post_send(int member, Tag tag, const void* data, std::size_t bytes) {
  return link_->messenger().post_send(members_[member], tag, data, bytes);
}

Messenger::Ticket WireGroup::post_recv(int member, Tag tag, void* data, std::size_t bytes) {
  return link_->messenger().post_recv(members_[member], tag, data, bytes);
}

void WireGroup::wait_all(Tickets& tickets) {
  for (const Messenger::Ticket ticket : tickets) wait(ticket);
  tickets.clear();
}

// --- meetings ------------------------------------------------------------------------------------

std::size_t WireGroup::most_sent_eagerly(int members) noexcept {
  // Everybody sends it to all the others. With few of them one trip less counts more than the
  // bytes; with many the bytes do.
  const auto others = static_cast<std::size_t>(members - 1);
  return std::clamp(kMostSentEagerly / others / 64 * 64, kLeastEager,
                    Messenger::kSmallBytes - kPayloadOffset);
}

std::size_t WireGroup::eager_bytes() const noexcept { return most_sent_eagerly(size()); }

std::size_t WireGroup::row_bytes() const noexcept { return kPayloadOffset + eager_bytes(); }

std::byte* WireGroup::rows() {
  const auto members = static_cast<std::size_t>(size());
  std::byte* rows = rows_.get(members * row_bytes());
  if (row_of_.empty())
    for (std::size_t r = 0; r < members; ++r) row_of_.push_back(rows + r * row_bytes());
  return rows;
}

Exchanged WireGroup::exchange(const Card& card, const void* payload, std::size_t bytes) {
  KOLO_CHECK(bytes <= eager_bytes());
  std::byte* mine = rows() + static_cast<std::size_t>(rank()) * row_bytes();
  std::memcpy(mine, &card, sizeof card);
  if (bytes != 0) std::memcpy(mine + kPayloadOffset, payload, bytes);
  outgoing_.assign(members_.size(), {mine, kPayloadOffset + bytes});
  return meet(card);
}

bool WireGroup::carries(std::size_t count, DataType type) const noexcept {
  // No member sends more to another than with the largest eager payload.
  return count * size_of(type) <= static_cast<std::size_t>(size()) * eager_bytes();
}

// In two trips, of which the first is the meeting: each member is shown its slice of everybody's
// input, reduces it and sends it to the others.
Exchanged WireGroup::exchange_and_allreduce(const Card& card, const void* input, void* output,
                                            std::size_t count, const Reduction& how) {
  const std::size_t element = size_of(how.type);
  const auto* in = static_cast<const std::byte*>(input);
  std::byte* place = sliced_.get(members_.size() * row_bytes());
  outgoing_.clear();
  for (int r = 0; r < size(); ++r, place += row_bytes()) {
    const Slice slice = slice_of(count, element, size(), r);
    const std::size_t bytes = r == rank() ? 0 : slice.count * element;
    KOLO_CHECK(bytes <= eager_bytes());
    std::memcpy(place, &card, sizeof card);
    if (bytes != 0) std::memcpy(place + kPayloadOffset, in + slice.first * element, bytes);
    outgoing_.push_back({place, kPayloadOffset + bytes});
  }
  const Exchanged all = meet(card);
  if (!all.agreed()) return all;

  const Slice mine = slice_of(count, element, size(), rank());
  std::vector<const void*> inputs;
  for (int r = 0; r < size(); ++r)
    inputs.push_back(r == rank() ? in + mine.first * element
                                 : all.payload(r, mine.count * element));
  void* const result = static_cast<std::byte*>(output) + mine.first * element;
  if (mine.count != 0) reduce(inputs, {&result, 1}, mine.count, how);
  link_->guarded("allreduce", [&] { share_slices(output, count, element); });
  return all;
}

void WireGroup::share_slices(void* data, std::size_t count, std::size_t element_bytes) {
  std::vector<Block> outgoing, incoming;
  const auto block_of = [&](int slice_owner, int member) {
    const Slice slice = slice_of(count, element_bytes, size(), slice_owner);
    return Block{member, static_cast<std::byte*>(data) + slice.first * element_bytes,
                 slice.count * element_bytes};
  };
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    outgoing.push_back(block_of(rank(), r));
    incoming.push_back(block_of(r, r));
  }
  move(outgoing, incoming);
}

Exchanged WireGroup::meet(const Card& card) {
  const auto members = static_cast<std::size_t>(size());
  link_->guarded(to_string(card.kind), [&] {
    link_->messenger().exchange_small(members_, outgoing_, rows(), row_bytes(), link_->deadline());
  });
  bool agreed = true;
  for (std::size_t r = 0; r < members; ++r)
    agreed = agreed && reinterpret_cast<const Card*>(row_of_[r])->signature == card.signature;
  return {row_of_.data(),
          {.card = 0, .small = kPayloadOffset, .small_limit = row_bytes(), .large = kPayloadOffset},
          agreed};
}

void WireGroup::exchange_rows(std::span<const Messenger::SmallMessage> mine, void* all,
                              std::size_t stride) {
  link_->messenger().exchange_small(members_, mine, all, stride, link_->deadline());
}

void WireGroup::move(std::span<const Block> outgoing, std::span<const Block> incoming) {
  Tickets tickets;
  for (const Block& block : incoming)
    if (block.bytes != 0)
      tickets.push_back(post_recv(block.member, kBlock, block.data, block.bytes));
  for (const Block& block : outgoing)
    if (block.bytes != 0)
      tickets.push_back(post_send(block.member, kBlock, block.data, block.bytes));
  wait_all(tickets);
}

// --- point to point ------------------------------------------------------------------------------

void WireGroup::drop_finished_copies() {
  while (!copies_.empty() && link_->messenger().test(copies_.front().ticket)) copies_.pop_front();
}

void WireGroup::send(int to, std::span<const std::byte> header, const void* data,
                     std::size_t bytes) {
  Envelope envelope;
  KOLO_CHECK(header.size() <= sizeof envelope.header);
  envelope.bytes = bytes;
  envelope.header_bytes = static_cast<std::uint32_t>(header.size());
  std::memcpy(envelope.header, header.data(), header.size());
  link_->guarded("send", [&] {
    drop_finished_copies();
    const auto send_copy = [&](Tag tag, const void* from, std::size_t length) {
      Copy& copy = copies_.emplace_back();
      copy.bytes.assign(static_cast<const std::byte*>(from),
                        static_cast<const std::byte*>(from) + length);
      copy.ticket = post_send(to, tag, copy.bytes.data(), length);
    };
    send_copy(kEnvelope, &envelope, sizeof envelope);
    if (bytes == 0) return;
    if (bytes <= kCopiedSendBytes)
      send_copy(kBody, data, bytes);
    else
      wait(post_send(to, kBody, data, bytes));
  });
}

std::size_t WireGroup::recv_header(int from, std::span<std::byte> header) {
  Envelope envelope;
  link_->guarded("recv", [&] { wait(post_recv(from, kEnvelope, &envelope, sizeof envelope)); });
  std::memcpy(header.data(), envelope.header,
              std::min<std::size_t>(header.size(), envelope.header_bytes));
  return envelope.bytes;
}

void WireGroup::recv_body(int from, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  link_->guarded("recv", [&] {
    wait(post_recv(from, kBody, data != nullptr ? data : dropped_.get(bytes), bytes));
  });
}

// --- subsets -------------------------------------------------------------------------------------

std::unique_ptr<Group> WireGroup::subset(const std::vector<int>& chosen) {
  KOLO_CHECK(connect_ != nullptr);
  WireOptions options = link_->options();
  options.key = fmt::format("{}.{}", options.key, subsets_++);
  options.world_ranks.clear();
  for (int member : chosen) options.world_ranks.push_back(link_->options().world_ranks[member]);
  const int me = index_of(chosen, rank());
  if (me == static_cast<int>(chosen.size())) return nullptr;
  // The topology of a flat group says no more than size and rank.
  return make_flat_wire_group(Topology(me, std::vector<int>(chosen.size(), 0)), connect_,
                              std::move(options));
}

}  // namespace kolo::comm

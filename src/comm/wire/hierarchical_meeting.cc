// The meetings of HierarchicalGroup, alone and with an allreduce of middle size in them.
//
// A meeting has three parts: the ranks of a host show each other their entries, the leaders swap
// those of their hosts, and the leader hands out the table of all. It carries an allreduce so:
//   1. ranks of a host that agree sum up before the leaders talk
//   2. leaders send the host's sum with the entries: the whole of it, and each reduces all; or to
//      each the slice that it reduces, and the slices are shared in a second trip
//   3. if all agreed, what the leader hands out is the result
// One lane carries it all: for sizes like these fewer messages count more than more senders.
#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "comm/meeting.h"
#include "comm/reduce_kernels.h"
#include "comm/slices.h"
#include "comm/wire/hierarchical_group.h"

namespace kolo::comm {

Exchanged HierarchicalGroup::exchange(const Card& card, const void* payload, std::size_t bytes) {
  KOLO_CHECK(bytes <= eager_bytes_);
  guarded(to_string(card.kind), [&] {
    const LocalMeeting met = gather_entries(card, payload, bytes, nullptr);
    std::size_t table_bytes = 0;
    if (is_leader()) {
      const Messenger::SmallMessage same{message_to(0), sizeof(MessageHead) + met.entry_bytes};
      table_bytes = swap_messages(std::vector(hosts_.size(), same));
    }
    hand_out(table_bytes, nullptr);
  });
  return exchanged(card);
}

Exchanged HierarchicalGroup::exchanged(const Card& card) const {
  constexpr std::size_t kPayload = sizeof(Entry);
  const bool agreed = std::ranges::all_of(entries_, [&](const std::byte* entry) {
    return reinterpret_cast<const Entry*>(entry)->card.signature == card.signature;
  });
  return {entries_.data(),
          {.card = offsetof(Entry, card),
           .small = kPayload,
           .small_limit = kEntriesBytes,
           .large = kPayload},
          agreed};
}

std::byte* HierarchicalGroup::message_to(std::size_t host) {
  return messages_.get(2 * hosts_.size() * message_bytes_) + host * message_bytes_;
}

/// The entries of this host's ranks come into the leader's message to host 0. `data`: input and
/// output of a bulk operation of the local group that may follow.
HierarchicalGroup::LocalMeeting HierarchicalGroup::gather_entries(const Card& card,
                                                                  const void* payload,
                                                                  std::size_t bytes,
                                                                  const void* data) {
  alignas(16) std::byte mine[kEntriesBytes];
  Entry& entry = *reinterpret_cast<Entry*>(mine);
  entry = {bytes, 0, card};
  if (bytes != 0) std::memcpy(mine + sizeof(Entry), payload, bytes);
  const std::size_t length = entry_bytes(bytes);
  LocalMeeting met;
  std::byte* to = is_leader() ? message_to(0) + sizeof(MessageHead) : nullptr;
  const auto add = [&](const std::byte* shown) {
    const std::size_t shown_bytes = entry_bytes(reinterpret_cast<const Entry*>(shown)->bytes);
    std::memcpy(to, shown, shown_bytes);
    to += shown_bytes;
    met.entry_bytes += shown_bytes;
  };
  if (is_alone()) {
    add(mine);
  } else {
    locally([&] {
      Card outer;
      outer.signature = card.signature;
      outer.kind = card.kind;
      outer.input = outer.output = address(data);
      const Exchanged all = local_->exchange(outer, mine, length);
      met.agreed = all.agreed();
      // Always a long payload: an entry is larger than what goes into the short place.
      if (is_leader())
        for (int i = 0; i < local_->size(); ++i) add(all.payload(i, sizeof(Entry)));
    });
  }
  if (is_leader()) *reinterpret_cast<MessageHead*>(message_to(0)) = {met.entry_bytes, 0};
  return met;
}

/// Leaders: lays all entries into table_, hosts in order. Returns its length.
std::size_t HierarchicalGroup::swap_messages(std::span<const Messenger::SmallMessage> messages) {
  leaders_->exchange_rows(messages, message_from(0), message_bytes_);
  const auto head_of = [&](std::size_t host) {
    return reinterpret_cast<const MessageHead*>(message_from(host));
  };
  std::size_t total = 0;
  for (std::size_t host = 0; host < hosts_.size(); ++host) total += head_of(host)->entry_bytes;
  std::byte* table = table_.get(total);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    std::memcpy(table, head_of(host) + 1, head_of(host)->entry_bytes);
    table += head_of(host)->entry_bytes;
  }
  find_entries(total);
  return total;
}

/// The leader's table to all ranks of the host. If it has none to show (0 bytes), `result` is what
/// a broadcast by the local group may follow with. Returns the table's length on all.
std::size_t HierarchicalGroup::hand_out(std::size_t table_bytes, const void* result) {
  if (is_alone()) return table_bytes;
  locally([&] {
    const std::size_t eager = local_->eager_bytes();
    std::byte* table = table_bytes != 0 ? table_.get(table_bytes) : nullptr;
    Card card;
    card.signature = 1;
    card.count = table_bytes;
    card.input = card.output = address(table != nullptr ? table : result);
    const Exchanged all = local_->exchange(card, table, table_bytes <= eager ? table_bytes : 0);
    table_bytes = all.card(0).count;
    if (table_bytes == 0 || (is_leader() && table_bytes <= eager)) return;
    if (!is_leader()) table = table_.get(table_bytes);
    if (table_bytes <= eager)
      std::memcpy(table, all.payload(0, table_bytes), table_bytes);
    else
      local_->broadcast(table, table_bytes, 0);
  });
  if (table_bytes != 0 && !is_leader()) find_entries(table_bytes);
  return table_bytes;
}

void HierarchicalGroup::find_entries(std::size_t table_bytes) {
  entries_.resize(static_cast<std::size_t>(size()));
  const std::byte* at = table_.get(table_bytes);
  for (const auto& ranks : hosts_)
    for (const int member : ranks) {
      entries_[member] = at;
      at += entry_bytes(reinterpret_cast<const Entry*>(at)->bytes);
    }
}

// --- with an allreduce ---------------------------------------------------------------------------

HierarchicalGroup::Halves HierarchicalGroup::halves_of(const Reduction& how) {
  const bool is_short = how.type == DataType::float16 || how.type == DataType::bfloat16;
  const DataType type = is_short ? DataType::float32 : how.type;
  return {{type, how.op, how.prescale, 1.0, 1}, {type, how.op, 1.0, how.postscale, how.divisor}};
}

bool HierarchicalGroup::carries(std::size_t count, DataType type) const noexcept {
  Reduction how;
  how.type = type;
  return count * size_of(halves_of(how).across_hosts.type) <= hosts_.size() * carried_bytes_;
}

Exchanged HierarchicalGroup::exchange_and_allreduce(const Card& card, const void* input,
                                                    void* output, std::size_t count,
                                                    const Reduction& how) {
  const Halves halves = halves_of(how);
  const DataType sum_type = halves.across_hosts.type;
  const std::size_t bytes = count * size_of(how.type);
  const std::size_t sum_bytes = count * size_of(sum_type);
  bool agreed = false;
  guarded(to_string(card.kind), [&] {
    // Not in place: the input stays as it is if some other host does not agree.
    const std::size_t room = (sum_bytes + 63) / 64 * 64;
    std::byte* const sum = partial_.get(2 * room);
    std::byte* const result = sum + room;
    if (sum_type == how.type) {
      copy_bytes(sum, input, bytes);
    } else {
      void* const wide = sum;
      reduce({&input, 1}, how.type, {&wide, 1}, sum_type, count, Reduction{});
    }

    const LocalMeeting met = gather_entries(card, nullptr, 0, sum);
    if (met.agreed) locally([&] { local_->allreduce(sum, sum, count, halves.within_host); });
    std::size_t table_bytes = 0;
    if (is_leader()) {
      table_bytes = swap_messages(
          messages_with_sum(met, met.agreed ? sum : nullptr, count, size_of(sum_type)));
      if (exchanged(card).agreed()) {
        reduce_across(sum, result, count, how.type, halves.across_hosts);
        table_bytes = 0;
      }
    }
    agreed = hand_out(table_bytes, result) == 0;
    if (!agreed) return;
    if (is_leader()) copy_bytes(output, result, bytes);
    if (!is_alone()) locally([&] { local_->broadcast(is_leader() ? result : output, bytes, 0); });
  });
  return agreed ? Exchanged(nullptr, {}, true) : exchanged(card);
}

/// What of a sum of `count` elements a leader gets from each of the others.
Slice HierarchicalGroup::carried_slice(std::size_t host, std::size_t count,
                                       std::size_t element) const {
  if (count * element <= carried_bytes_) return {0, count};
  return slice_of(count, element, static_cast<int>(hosts_.size()), static_cast<int>(host));
}

/// Message 0 holds the entries already. No `sum`: they alone are sent.
std::vector<Messenger::SmallMessage> HierarchicalGroup::messages_with_sum(const LocalMeeting& met,
                                                                          const std::byte* sum,
                                                                          std::size_t count,
                                                                          std::size_t element) {
  const std::size_t head_bytes = sizeof(MessageHead) + met.entry_bytes;
  std::vector<Messenger::SmallMessage> messages;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    std::byte* const message = message_to(host);
    const Slice slice = sum != nullptr ? carried_slice(host, count, element) : Slice{0, 0};
    if (host != 0) std::memcpy(message, message_to(0), head_bytes);
    copy_bytes(message + head_bytes, sum + slice.first * element, slice.count * element);
    messages.emplace_back(message, head_bytes + slice.count * element);
  }
  return messages;
}

/// The leader's part between the two trips, and the second one. `type` is the result's.
void HierarchicalGroup::reduce_across(std::byte* sum, std::byte* result, std::size_t count,
                                      DataType type, const Reduction& how) {
  const std::size_t element = size_of(how.type);
  const Slice mine = carried_slice(static_cast<std::size_t>(host_), count, element);
  std::vector<const void*> sums;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const std::byte* message = message_from(host);
    const auto& head = *reinterpret_cast<const MessageHead*>(message);
    sums.push_back(static_cast<int>(host) == host_
                       ? sum + mine.first * element
                       : message + sizeof(MessageHead) + head.entry_bytes);
  }
  std::byte* const reduced = type == how.type ? result : sum;
  void* const my_reduced = reduced + mine.first * element;
  if (mine.count != 0) reduce(sums, {&my_reduced, 1}, mine.count, how);
  if (mine.count != count) leaders_->share_slices(reduced, count, element);
  if (type == how.type) return;
  const void* const wide = reduced;
  void* const narrow = result;
  reduce({&wide, 1}, how.type, {&narrow, 1}, type, count, Reduction{});
}

}  // namespace kolo::comm

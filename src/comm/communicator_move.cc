// The operations of a Communicator that move data between all ranks.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/errors.h"
#include "comm/meeting.h"
#include "comm/reduce_kernels.h"
#include "kolo/communicator.h"

namespace kolo {

using comm::Agree;
using comm::Card;
using comm::Exchanged;
using comm::OpKind;

namespace {

std::size_t sum_of(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

std::vector<std::size_t> Communicator::allgather(const void* input, std::size_t rows,
                                                 std::size_t row_size, DataType type,
                                                 const OutputAllocator& output) {
  const std::size_t count = comm::elements_of(*group_, OpKind::allgather, rows, row_size);
  comm::check_type(*group_, OpKind::allgather, type);
  comm::check_memory(*group_, OpKind::allgather, input, count, "input");
  Card card;
  card.kind = OpKind::allgather;
  card.type = type;
  card.count = count;
  card.row_size = row_size;
  card.input = comm::address(input);
  sign(card, Agree::all_but_count);

  const std::size_t element = size_of(type);
  const std::size_t eager = group_->eager_bytes();
  const Exchanged all =
      comm::meet(*group_, card, input, count * element <= eager ? count * element : 0);
  std::vector<std::size_t> counts(size()), bytes(size());
  for (int r = 0; r < size(); ++r) {
    counts[r] = all.card(r).count;
    bytes[r] = counts[r] * element;
  }
  const std::size_t longest = *std::max_element(bytes.begin(), bytes.end());
  if (longest > eager) {
    // One more meeting: nobody begins before all have room for the result.
    void* const room =
        comm::make_room(*group_, card.kind, sum_of(counts), [&] { return output(counts); });
    card.output = comm::address(room);
    comm::meet(*group_, card, nullptr, 0);
    group_->allgather(input, room, bytes);
    return counts;
  }
  auto* out = static_cast<std::byte*>(
      comm::room_of(card.kind, sum_of(counts), [&] { return output(counts); }));
  for (int r = 0; r < size(); ++r) {
    comm::copy_bytes(out, all.payload(r, bytes[r]), bytes[r]);
    out += bytes[r];
  }
  return counts;
}

void Communicator::broadcast(void* data, std::size_t count, DataType type, int root) {
  comm::check_type(*group_, OpKind::broadcast, type);
  comm::check_root(*group_, OpKind::broadcast, root);
  comm::check_memory(*group_, OpKind::broadcast, data, count, "data");
  Card card;
  card.kind = OpKind::broadcast;
  card.type = type;
  card.count = count;
  card.root = root;
  card.input = comm::address(data);
  card.output = comm::address(data);
  sign(card, Agree::all);
  const std::size_t bytes = count * size_of(type);
  const bool eager = bytes <= group_->eager_bytes();
  const Exchanged all = comm::meet(*group_, card, data, eager && rank() == root ? bytes : 0);
  if (!eager)
    group_->broadcast(data, bytes, root);
  else if (rank() != root)
    comm::copy_bytes(data, all.payload(root, bytes), bytes);
}

std::vector<std::vector<std::size_t>> Communicator::share_counts(const Card& card,
                                                                 std::vector<std::size_t> mine) {
  const std::size_t bytes = mine.size() * sizeof(std::size_t);
  const auto n = static_cast<std::size_t>(size());
  std::vector<std::vector<std::size_t>> table(n, std::vector<std::size_t>(n));
  if (bytes <= group_->eager_bytes()) {
    const Exchanged all = comm::meet(*group_, card, mine.data(), bytes);
    for (int r = 0; r < size(); ++r) std::memcpy(table[r].data(), all.payload(r, bytes), bytes);
    return table;
  }
  Card bulk = card;
  bulk.input = comm::address(mine.data());
  comm::meet(*group_, bulk, nullptr, 0);
  std::vector<std::size_t> flat(n * n);
  group_->allgather(mine.data(), flat.data(), std::vector<std::size_t>(n, bytes));
  for (std::size_t r = 0; r < n; ++r) std::copy_n(flat.begin() + r * n, n, table[r].begin());
  return table;
}

void Communicator::move_blocks(const void* input, void* output, std::size_t element,
                               const std::vector<std::vector<std::size_t>>& counts) {
  const auto n = static_cast<std::size_t>(size());
  std::vector<std::size_t> send(n), recv(n);
  std::size_t largest = 0;
  for (std::size_t r = 0; r < n; ++r) {
    send[r] = counts[rank()][r] * element;
    recv[r] = counts[r][rank()] * element;
    largest = std::max(
        largest, element * std::accumulate(counts[r].begin(), counts[r].end(), std::size_t{0}));
  }
  Card card;
  card.kind = OpKind::alltoall;
  card.input = comm::address(input);
  card.output = comm::address(output);
  sign(card, Agree::all);
  const std::size_t mine = std::accumulate(send.begin(), send.end(), std::size_t{0});
  const bool eager = largest <= group_->eager_bytes();
  const Exchanged all = comm::meet(*group_, card, input, eager ? mine : 0);
  if (!eager) return group_->alltoall(input, send, output, recv);
  auto* out = static_cast<std::byte*>(output);
  for (std::size_t r = 0; r < n; ++r) {
    const auto total =
        element * std::accumulate(counts[r].begin(), counts[r].end(), std::size_t{0});
    const auto place =
        element * std::accumulate(counts[r].begin(), counts[r].begin() + rank(), std::size_t{0});
    comm::copy_bytes(out, all.payload(static_cast<int>(r), total) + place, recv[r]);
    out += recv[r];
  }
}

std::vector<std::size_t> Communicator::alltoall(const void* input, std::size_t rows,
                                                std::size_t row_size, DataType type,
                                                std::span<const std::size_t> splits,
                                                const OutputAllocator& output) {
  constexpr auto kKind = OpKind::alltoall;
  const auto n = static_cast<std::size_t>(size());
  comm::check_type(*group_, kKind, type);
  comm::check_memory(*group_, kKind, input, comm::elements_of(*group_, kKind, rows, row_size),
                     "input");
  std::vector<std::size_t> mine(splits.begin(), splits.end());
  if (mine.empty()) {
    if (rows % n != 0) comm::refuse(*group_, kKind, "{} rows do not divide by {} ranks", rows, n);
    mine.assign(n, rows / n);
  }
  if (mine.size() != n) comm::refuse(*group_, kKind, "{} splits for {} ranks", mine.size(), n);
  comm::sum_of_splits(*group_, kKind, mine, rows);
  Card card;
  card.kind = kKind;
  card.type = type;
  card.row_size = row_size;
  sign(card, Agree::all_but_count);
  const auto table = share_counts(card, mine);

  std::vector<std::size_t> received(n), elements(n);
  for (std::size_t r = 0; r < n; ++r) {
    received[r] = table[r][rank()];
    elements[r] = received[r] * row_size;
  }
  void* const room =
      comm::make_room(*group_, kKind, sum_of(elements), [&] { return output(elements); });
  move_blocks(input, room, size_of(type) * row_size, table);
  return received;
}

std::vector<std::size_t> Communicator::gather(const void* input, std::size_t count, DataType type,
                                              int root, const OutputAllocator& output) {
  comm::check_type(*group_, OpKind::gather, type);
  comm::check_root(*group_, OpKind::gather, root);
  comm::check_memory(*group_, OpKind::gather, input, count, "input");
  Card card;
  card.kind = OpKind::gather;
  card.type = type;
  card.root = root;
  sign(card, Agree::all_but_count);
  std::vector<std::size_t> mine(size(), 0);
  mine[root] = count;
  const auto table = share_counts(card, mine);
  std::vector<std::size_t> counts(size());
  for (int r = 0; r < size(); ++r) counts[r] = table[r][root];
  void* const room = rank() == root ? comm::make_room(*group_, OpKind::gather, sum_of(counts),
                                                      [&] { return output(counts); })
                                    : nullptr;
  move_blocks(input, room, size_of(type), table);
  return counts;
}

void Communicator::scatter(const void* input, std::span<const std::size_t> counts, void* output,
                           std::size_t count, DataType type, int root) {
  constexpr auto kKind = OpKind::scatter;
  const auto n = static_cast<std::size_t>(size());
  comm::check_type(*group_, kKind, type);
  comm::check_root(*group_, kKind, root);
  comm::check_memory(*group_, kKind, output, count, "output");
  if (rank() == root) {
    if (counts.size() != n)
      comm::refuse(*group_, kKind, "{} counts for {} ranks", counts.size(), n);
    if (count != counts[root])
      comm::refuse(*group_, kKind, "the root sends itself {} elements and expects {}", counts[root],
                   count);
    comm::check_memory(*group_, kKind, input,
                       comm::sum_of_splits(*group_, kKind, counts, comm::kMostElements), "input");
  }
  Card card;
  card.kind = kKind;
  card.type = type;
  card.root = root;
  sign(card, Agree::all_but_count);
  // The root says what it sends, the others what they expect (in their entry for themselves).
  std::vector<std::size_t> mine(n, 0);
  if (rank() == root)
    mine.assign(counts.begin(), counts.end());
  else
    mine[rank()] = count;
  auto table = share_counts(card, mine);
  for (std::size_t r = 0; r < n; ++r)
    if (static_cast<int>(r) != root && table[r][r] != table[root][r])
      throw_error(ErrorCode::invalid_argument,
                  "scatter: root {} sends {} elements to rank {}, which expects {}", root,
                  table[root][r], r, table[r][r]);
  for (std::size_t r = 0; r < n; ++r)
    if (static_cast<int>(r) != root) table[r].assign(n, 0);
  move_blocks(input, output, size_of(type), table);
}

}  // namespace kolo

#include "kolo/communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/errors.h"
#include "comm/adasum.h"
#include "comm/card.h"
#include "comm/communicator_scratch.h"
#include "comm/group.h"
#include "comm/reduce_kernels.h"

namespace kolo {

using comm::Agree;
using comm::Card;
using comm::Exchanged;
using comm::OpKind;
using comm::Reduction;

namespace {

std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

/// The meeting at the start of every operation: all agree, or all throw.
Exchanged meet(comm::Group& group, const Card& card, const void* payload, std::size_t bytes) {
  const Exchanged all = group.exchange(card, payload, bytes);
  if (!all.agreed()) [[unlikely]]
    throw Error(ErrorCode::invalid_argument, describe_mismatch(all, group.size()));
  return all;
}

/// Ends a call whose arguments are wrong on this rank alone; the others get an error too.
template <class... Args>
[[noreturn]] void refuse(comm::Group& group, OpKind kind, fmt::format_string<Args...> format,
                         Args&&... args) {
  group.exchange(comm::refusal(kind), nullptr, 0);
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: ", to_string(kind)) +
                                               fmt::format(format, std::forward<Args>(args)...));
}

void check_memory(comm::Group& group, OpKind kind, const void* memory, std::size_t count,
                  const char* name) {
  if (memory == nullptr && count != 0) [[unlikely]]
    refuse(group, kind, "{} is null", name);
}

/// Values outside the enumerations can come from a binding.
bool is_known(DataType type) { return static_cast<int>(type) < kDataTypeCount; }

void check_type(comm::Group& group, OpKind kind, DataType type) {
  if (!is_known(type)) [[unlikely]]
    refuse(group, kind, "{} is not a data type", static_cast<int>(type));
}

void check_root(comm::Group& group, OpKind kind, int root) {
  if (root < 0 || root >= group.size())
    refuse(group, kind, "root {} is not in 0…{}", root, group.size() - 1);
}

void check_reduction(comm::Group& group, OpKind kind, DataType type, ReduceOp op,
                     const Scaling& scaling) {
  check_type(group, kind, type);
  if (static_cast<int>(op) >= kReduceOpCount) [[unlikely]]
    refuse(group, kind, "{} is not a reduction", static_cast<int>(op));
  const bool is_float = type >= DataType::float16;
  if (type == DataType::boolean &&
      (op == ReduceOp::average || scaling.prescale != 1.0 || scaling.postscale != 1.0))
    refuse(group, kind, "bool has no average and no factors");
  if (op == ReduceOp::adasum && !is_float)
    refuse(group, kind, "adasum needs a floating-point type, not {}", to_string(type));
  if (kind == OpKind::reducescatter && op != ReduceOp::sum && op != ReduceOp::average)
    refuse(group, kind, "only sum and average, not {}", to_string(op));
}

Reduction reduction_of(DataType type, ReduceOp op, const Scaling& scaling, int size) {
  Reduction how{type, op, scaling.prescale, scaling.postscale, 1};
  if (op == ReduceOp::average) {
    how.op = ReduceOp::sum;
    how.divisor = size;
  }
  return how;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<comm::Group> group, Topology topology,
                           std::shared_ptr<SharedMemory> memory)
    : group_(std::move(group)),
      topology_(std::move(topology)),
      memory_(std::move(memory)),
      scratch_(std::make_unique<comm::Scratch>(memory_)) {}

Communicator::~Communicator() = default;

std::string Communicator::transport() const { return group_->describe(); }

void Communicator::barrier() {
  Card card;
  card.kind = OpKind::barrier;
  sign(card, Agree::all);
  meet(*group_, card, nullptr, 0);
}

// --- reductions ----------------------------------------------------------------------------------

void Communicator::allreduce(const void* input, void* output, std::size_t count, DataType type,
                             ReduceOp op, Scaling scaling) {
  allreduce(OpKind::allreduce, 0, input, output, count, type, op, scaling);
}

void Communicator::allreduce(OpKind kind, std::uint64_t salt, const void* input, void* output,
                             std::size_t count, DataType type, ReduceOp op, Scaling scaling) {
  check_reduction(*group_, kind, type, op, scaling);
  check_memory(*group_, kind, input, count, "input");
  check_memory(*group_, kind, output, count, "output");
  Card card;
  card.kind = kind;
  card.type = type;
  card.op = op;
  card.count = count;
  card.prescale = scaling.prescale;
  card.postscale = scaling.postscale;
  card.input = address(input);
  card.output = address(output);
  sign(card, Agree::all, salt);

  const std::size_t bytes = count * size_of(type);
  const bool eager = bytes <= group_->eager_bytes() && op != ReduceOp::adasum;
  const Exchanged all = meet(*group_, card, input, eager ? bytes : 0);
  if (count == 0) return;
  if (op == ReduceOp::adasum) {
    comm::adasum(*group_, input, output, count, type, scaling);
    return;
  }
  const Reduction how = reduction_of(type, op, scaling, size());
  if (!eager) return group_->allreduce(input, output, count, how);
  // Not one's own payload: its line is on its way to the others.
  scratch_->inputs.clear();
  for (int r = 0; r < size(); ++r)
    scratch_->inputs.push_back(r == rank() ? input : all.payload(r, bytes));
  comm::reduce(scratch_->inputs, {&output, 1}, count, how);
}

void Communicator::grouped_allreduce(std::span<const TensorRef> tensors, ReduceOp op,
                                     Scaling scaling) {
  // The salt makes every meeting of the group agree on the whole list.
  std::uint64_t salt = comm::mix(tensors.size(), 1);
  for (const TensorRef& tensor : tensors)
    salt = comm::mix(comm::mix(salt, tensor.count), static_cast<std::uint64_t>(tensor.type));
  for (const TensorRef& tensor : tensors) {
    check_memory(*group_, OpKind::grouped_allreduce, tensor.input, tensor.count, "an input");
    check_memory(*group_, OpKind::grouped_allreduce, tensor.output, tensor.count, "an output");
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
    std::byte* packed = scratch_->own(total * size_of(type));
    std::size_t place = 0;
    for (const TensorRef& tensor : tensors) {
      if (!of_type(tensor)) continue;
      comm::copy_bytes(packed + place, tensor.input, tensor.count * size_of(type));
      place += tensor.count * size_of(type);
    }
    allreduce(OpKind::grouped_allreduce, salt, packed, packed, total, type, op, scaling);
    place = 0;
    for (const TensorRef& tensor : tensors) {
      if (!of_type(tensor)) continue;
      comm::copy_bytes(tensor.output, packed + place, tensor.count * size_of(type));
      place += tensor.count * size_of(type);
    }
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
  for (int r = 0; r < size(); ++r) counts[r] = rows_of_rank(rows, r) * row_size;
  check_memory(*group_, kKind, input, rows * row_size, "input");
  check_memory(*group_, kKind, output, counts[rank()], "output");
  Card card;
  card.kind = kKind;
  card.type = type;
  card.op = op;
  card.count = rows * row_size;
  card.row_size = row_size;
  card.prescale = scaling.prescale;
  card.postscale = scaling.postscale;
  card.input = address(input);
  card.output = address(output);
  sign(card, Agree::all);

  const std::size_t bytes = card.count * size_of(type);
  const bool eager = bytes <= group_->eager_bytes();
  const Exchanged all = meet(*group_, card, input, eager ? bytes : 0);
  if (card.count == 0) return;
  const Reduction how = reduction_of(type, op, scaling, size());
  if (!eager) return group_->reducescatter(input, output, counts, how);
  const std::size_t place =
      std::accumulate(counts.begin(), counts.begin() + rank(), std::size_t{0}) * size_of(type);
  scratch_->inputs.clear();
  const auto* own = static_cast<const std::byte*>(input);
  for (int r = 0; r < size(); ++r)
    scratch_->inputs.push_back((r == rank() ? own : all.payload(r, bytes)) + place);
  comm::reduce(scratch_->inputs, {&output, 1}, counts[rank()], how);
}

// --- moving data ---------------------------------------------------------------------------------

std::vector<std::size_t> Communicator::allgather(const void* input, std::size_t rows,
                                                 std::size_t row_size, DataType type,
                                                 const OutputAllocator& output) {
  const std::size_t count = rows * row_size;
  check_type(*group_, OpKind::allgather, type);
  check_memory(*group_, OpKind::allgather, input, count, "input");
  Card card;
  card.kind = OpKind::allgather;
  card.type = type;
  card.count = count;
  card.row_size = row_size;
  card.input = address(input);
  sign(card, Agree::all_but_count);

  const std::size_t element = size_of(type);
  const std::size_t eager = group_->eager_bytes();
  const Exchanged all = meet(*group_, card, input, count * element <= eager ? count * element : 0);
  std::vector<std::size_t> counts(size()), bytes(size());
  for (int r = 0; r < size(); ++r) {
    counts[r] = all.card(r).count;
    bytes[r] = counts[r] * element;
  }
  auto* out = static_cast<std::byte*>(output(counts));
  const std::size_t longest = *std::max_element(bytes.begin(), bytes.end());
  if (longest > eager) {
    group_->allgather(input, out, bytes);
    return counts;
  }
  for (int r = 0; r < size(); ++r) {
    comm::copy_bytes(out, all.payload(r, bytes[r]), bytes[r]);
    out += bytes[r];
  }
  return counts;
}

void Communicator::broadcast(void* data, std::size_t count, DataType type, int root) {
  check_type(*group_, OpKind::broadcast, type);
  check_root(*group_, OpKind::broadcast, root);
  check_memory(*group_, OpKind::broadcast, data, count, "data");
  Card card;
  card.kind = OpKind::broadcast;
  card.type = type;
  card.count = count;
  card.root = root;
  card.input = address(data);
  card.output = address(data);
  sign(card, Agree::all);
  const std::size_t bytes = count * size_of(type);
  const bool eager = bytes <= group_->eager_bytes();
  const Exchanged all = meet(*group_, card, data, eager && rank() == root ? bytes : 0);
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
    const Exchanged all = meet(*group_, card, mine.data(), bytes);
    for (int r = 0; r < size(); ++r) std::memcpy(table[r].data(), all.payload(r, bytes), bytes);
    return table;
  }
  Card bulk = card;
  bulk.input = address(mine.data());
  meet(*group_, bulk, nullptr, 0);
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
  card.input = address(input);
  card.output = address(output);
  sign(card, Agree::all);
  const std::size_t mine = std::accumulate(send.begin(), send.end(), std::size_t{0});
  const bool eager = largest <= group_->eager_bytes();
  const Exchanged all = meet(*group_, card, input, eager ? mine : 0);
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
  check_type(*group_, kKind, type);
  check_memory(*group_, kKind, input, rows * row_size, "input");
  std::vector<std::size_t> mine(splits.begin(), splits.end());
  if (mine.empty()) {
    if (rows % n != 0) refuse(*group_, kKind, "{} rows do not divide by {} ranks", rows, n);
    mine.assign(n, rows / n);
  }
  if (mine.size() != n) refuse(*group_, kKind, "{} splits for {} ranks", mine.size(), n);
  const std::size_t sum = std::accumulate(mine.begin(), mine.end(), std::size_t{0});
  if (sum > rows) refuse(*group_, kKind, "splits add up to {}, but there are {} rows", sum, rows);
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
  move_blocks(input, output(elements), size_of(type) * row_size, table);
  return received;
}

std::vector<std::size_t> Communicator::gather(const void* input, std::size_t count, DataType type,
                                              int root, const OutputAllocator& output) {
  check_type(*group_, OpKind::gather, type);
  check_root(*group_, OpKind::gather, root);
  check_memory(*group_, OpKind::gather, input, count, "input");
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
  void* out = rank() == root ? output(counts) : nullptr;
  move_blocks(input, out, size_of(type), table);
  return counts;
}

void Communicator::scatter(const void* input, std::span<const std::size_t> counts, void* output,
                           std::size_t count, DataType type, int root) {
  constexpr auto kKind = OpKind::scatter;
  const auto n = static_cast<std::size_t>(size());
  check_type(*group_, kKind, type);
  check_root(*group_, kKind, root);
  check_memory(*group_, kKind, output, count, "output");
  if (rank() == root) {
    if (counts.size() != n) refuse(*group_, kKind, "{} counts for {} ranks", counts.size(), n);
    if (count != counts[root])
      refuse(*group_, kKind, "the root sends itself {} elements and expects {}", counts[root],
             count);
    check_memory(*group_, kKind, input,
                 std::accumulate(counts.begin(), counts.end(), std::size_t{0}), "input");
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

// --- point to point ------------------------------------------------------------------------------

namespace {

struct MessageHeader {
  std::uint64_t count = 0;
  DataType type = DataType::uint8;
};

void check_message(const char* what, DataType type, int peer, int rank, int size) {
  if (!is_known(type))
    throw_error(ErrorCode::invalid_argument, "{}: {} is not a data type", what,
                static_cast<int>(type));
  if (peer < 0 || peer >= size || peer == rank)
    throw_error(ErrorCode::invalid_argument, "{}: rank {} is {}", what, peer,
                peer == rank ? "this rank itself" : fmt::format("not in 0…{}", size - 1));
}

}  // namespace

void Communicator::send(const void* data, std::size_t count, DataType type, int to) {
  check_message("send", type, to, rank(), size());
  if (data == nullptr && count != 0)
    throw_error(ErrorCode::invalid_argument, "send to rank {}: data is null", to);
  const MessageHeader header{count, type};
  group_->send(to, std::as_bytes(std::span(&header, 1)), data, count * size_of(type));
}

void Communicator::recv(void* data, std::size_t count, DataType type, int from) {
  check_message("recv", type, from, rank(), size());
  if (data == nullptr && count != 0)
    throw_error(ErrorCode::invalid_argument, "recv from rank {}: data is null", from);
  MessageHeader header;
  const std::size_t bytes =
      group_->recv_header(from, std::as_writable_bytes(std::span(&header, 1)));
  const bool fits = header.count == count && header.type == type;
  group_->recv_body(from, fits ? data : nullptr, bytes);
  if (!fits)
    throw_error(ErrorCode::invalid_argument,
                "recv: expected {} × {}, rank {} sent {} × {}; the message is thrown away", count,
                to_string(type), from, header.count, to_string(header.type));
}

// --- groups --------------------------------------------------------------------------------------

std::unique_ptr<Communicator> Communicator::subset(const std::vector<int>& ranks) {
  constexpr auto kKind = OpKind::subset;
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) refuse(*group_, kKind, "the list of ranks is empty");
  if (sorted.front() < 0 || sorted.back() >= size())
    refuse(*group_, kKind, "rank {} is not in 0…{}",
           sorted.front() < 0 ? sorted.front() : sorted.back(), size() - 1);
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    refuse(*group_, kKind, "rank {} is listed twice", *twice);
  std::uint64_t salt = 0;
  for (int r : ranks) salt = comm::mix(salt, static_cast<std::uint64_t>(r));
  Card card;
  card.kind = kKind;
  sign(card, Agree::all, salt);
  meet(*group_, card, nullptr, 0);
  std::shared_ptr<comm::Group> group = group_->subset(ranks);
  if (group == nullptr) return nullptr;
  return std::make_unique<Communicator>(std::move(group), topology_.subset(ranks), memory_);
}

}  // namespace kolo

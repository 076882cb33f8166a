// Collective operations over a group of ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kolo/buffer.h"
#include "kolo/topology.h"
#include "kolo/types.h"

namespace kolo {

namespace comm {
class Group;
struct Card;
struct Scratch;
struct Internals;
enum class OpKind : std::uint8_t;
}  // namespace comm

/// Factors around a reduction: result = postscale * reduce(prescale * input).
struct Scaling {
  double prescale = 1.0;
  double postscale = 1.0;
};

/// One tensor of a grouped operation.
struct TensorRef {
  const void* input = nullptr;
  void* output = nullptr;  ///< may equal input
  std::size_t count = 0;
  DataType type = DataType::float32;
};

/// Called once the sizes are known, with the number of elements from each rank; returns where the
/// result (their sum of elements) shall be written. If it throws, its rank throws the same, the
/// others throw `unavailable` with its number in the text (unless the data was so small that they
/// have it already), and the communicator stays usable.
using OutputAllocator = std::function<void*(std::span<const std::size_t> counts)>;

/// Called for each copy that an operation makes besides reducing, with its begin and end.
using CopyNote = std::function<void(std::chrono::steady_clock::time_point begin,
                                    std::chrono::steady_clock::time_point end)>;

/// A group of ranks that call collective operations in the same order.
///
/// Every operation blocks until this rank's part is done. Counts are elements. An allreduce may
/// have its output where its input is; the input of an allgather may lie at its place inside the
/// output; otherwise inputs and outputs must not overlap. One thread at a time per communicator;
/// different communicators are independent of each other, also when used by different threads of
/// one process.
///
/// Errors: a mismatch between ranks (operation, type, count, root, factors) throws invalid_argument
/// on every rank and the communicator stays usable. A rank that died, left or stalled past the
/// timeout throws peer_lost on every rank, from then on.
///
/// Results are bitwise equal on all ranks, and from run to run with the same placement.
class Communicator {
 public:
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
  [[nodiscard]] int rank() const noexcept { return topology_.rank(); }
  [[nodiscard]] int size() const noexcept { return topology_.size(); }

  /// The transport of this communicator, for people: "shm", "tcp", "shm+tcp" …
  [[nodiscard]] std::string transport() const;

  // --- reductions -----------------------------------------------------------------------------
  void allreduce(const void* input, void* output, std::size_t count, DataType type,
                 ReduceOp op = ReduceOp::average, Scaling scaling = {});

  /// All tensors are reduced as one operation, packed into one buffer. They may differ in type.
  void grouped_allreduce(std::span<const TensorRef> tensors, ReduceOp op = ReduceOp::average,
                         Scaling scaling = {}, const CopyNote& note = nullptr);

  /// `input` has rows × row_size elements; rank r receives its share of the rows, the first
  /// rows % size ranks one more than the others (see rows_of_rank). sum and average only.
  void reducescatter(const void* input, void* output, std::size_t rows, std::size_t row_size,
                     DataType type, ReduceOp op = ReduceOp::average, Scaling scaling = {});

  /// Rows that reducescatter gives to `rank`.
  [[nodiscard]] std::size_t rows_of_rank(std::size_t rows, int rank) const noexcept;

  // --- moving data ----------------------------------------------------------------------------
  /// Concatenates the ranks' inputs in rank order; `rows` may differ, row_size must not.
  /// Returns the number of elements from each rank.
  std::vector<std::size_t> allgather(const void* input, std::size_t rows, std::size_t row_size,
                                     DataType type, const OutputAllocator& output);

  void broadcast(void* data, std::size_t count, DataType type, int root);

  /// splits[r] rows go to rank r; empty splits = equal parts (rows must divide by size).
  /// Returns the number of rows received from each rank. Counts given to `output` are elements.
  std::vector<std::size_t> alltoall(const void* input, std::size_t rows, std::size_t row_size,
                                    DataType type, std::span<const std::size_t> splits,
                                    const OutputAllocator& output);

  /// As allgather, at the root only; `output` is not called elsewhere.
  std::vector<std::size_t> gather(const void* input, std::size_t count, DataType type, int root,
                                  const OutputAllocator& output);

  /// Root's input holds counts[r] elements for each rank in turn (`counts` is read at the root);
  /// every rank says how many it expects, and a disagreement is an error everywhere.
  void scatter(const void* input, std::span<const std::size_t> counts, void* output,
               std::size_t count, DataType type, int root);

  /// Point to point, in order per pair. A send of up to 64 KiB does not wait for its receiver.
  /// A receiver that expects another type or count gets invalid_argument, and the message is
  /// discarded.
  void send(const void* data, std::size_t count, DataType type, int to);
  void recv(void* data, std::size_t count, DataType type, int from);

  void barrier();

  // --- speed ----------------------------------------------------------------------------------
  /// Between hosts, an allreduce of up to this many bytes (of one rank, times the others) takes one
  /// trip, in which everybody sends all to all; a larger one two, in which each byte travels less.
  /// Results are the same bits. 0: this rank talks over no wire, and setting it does nothing. To be
  /// set to the same on every rank, between operations.
  [[nodiscard]] std::size_t one_trip_bytes() const noexcept;
  void set_one_trip_bytes(std::size_t bytes) noexcept;

  // --- groups and memory ----------------------------------------------------------------------
  /// A new group of some of the ranks (any order; member i becomes rank i). Collective over this
  /// communicator: every rank calls it with the same list, also those not in it, who get nullptr.
  [[nodiscard]] std::unique_ptr<Communicator> subset(const std::vector<int>& ranks);

  /// Memory of our own: collectives on it need no copies. Not collective.
  template <class T>
  [[nodiscard]] Buffer<T> allocate(std::size_t count) {
    return Buffer<T>(memory_, count);
  }
  [[nodiscard]] const std::shared_ptr<SharedMemory>& memory() const noexcept { return memory_; }

  // --- typed sugar ----------------------------------------------------------------------------
  template <class T>
  void allreduce(std::span<T> data, ReduceOp op = ReduceOp::average, Scaling scaling = {}) {
    allreduce(data.data(), data.data(), data.size(), data_type_of<T>, op, scaling);
  }
  template <class T>
  [[nodiscard]] T allreduce(T value, ReduceOp op = ReduceOp::average) {
    allreduce(&value, &value, 1, data_type_of<T>, op);
    return value;
  }
  template <class T>
  [[nodiscard]] std::vector<T> allgather(std::span<const T> data) {
    std::vector<T> out;
    allgather(data.data(), data.size(), 1, data_type_of<T>, into(out));
    return out;
  }
  template <class T>
  void broadcast(std::span<T> data, int root) {
    broadcast(data.data(), data.size(), data_type_of<T>, root);
  }
  template <class T>
  [[nodiscard]] std::vector<T> alltoall(std::span<const T> data,
                                        std::span<const std::size_t> splits = {}) {
    std::vector<T> out;
    alltoall(data.data(), data.size(), 1, data_type_of<T>, splits, into(out));
    return out;
  }

  /// An OutputAllocator that sizes a vector.
  template <class T>
  static OutputAllocator into(std::vector<T>& out) {
    return [&out](std::span<const std::size_t> counts) -> void* {
      std::size_t total = 0;
      for (std::size_t count : counts) total += count;
      out.resize(total);
      return out.data();
    };
  }

 private:
  /// Communicators come from a Context and from subset(); kolo's other modules reach further.
  friend struct comm::Internals;
  Communicator(std::shared_ptr<comm::Group> group, Topology topology,
               std::shared_ptr<SharedMemory> memory);

  void allreduce(comm::OpKind kind, std::uint64_t salt, const void* input, void* output,
                 std::size_t count, DataType type, ReduceOp op, Scaling scaling);
  /// The meeting of operations in which each rank brings a number per rank: all of them, by rank.
  std::vector<std::vector<std::size_t>> share_counts(const comm::Card& card,
                                                     std::vector<std::size_t> mine);
  /// counts[a][b] elements go from rank a to rank b; blocks are contiguous in rank order.
  void move_blocks(const void* input, void* output, std::size_t element_bytes,
                   const std::vector<std::vector<std::size_t>>& counts);

  std::shared_ptr<comm::Group> group_;
  Topology topology_;
  std::shared_ptr<SharedMemory> memory_;
  std::unique_ptr<comm::Scratch> scratch_;
};

}  // namespace kolo

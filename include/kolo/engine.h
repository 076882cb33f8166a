// Named asynchronous operations: submitted in any order, started when the last rank has submitted.
//
// A rank announces what it has submitted; the first rank of the process set learns that all have
// it and tells everybody what to do next, so all do the same in the same order. There is no cycle
// timer: an announcement wakes a thread that otherwise sleeps, and an idle engine uses no time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kolo/communicator.h"
#include "kolo/context.h"
#include "kolo/types.h"

namespace kolo {

namespace runtime {
struct Internals;
struct Operation;
class SetEngine;
class Timeline;
}  // namespace runtime

/// Sizes of a tensor's dimensions; {} is a scalar. For reducescatter, allgather and alltoall the
/// first dimension is the one that is split or concatenated.
using Shape = std::vector<std::int64_t>;
[[nodiscard]] std::size_t element_count(const Shape& shape);

/// A tensor as the engine sees it. The memory belongs to the caller and must stay untouched until
/// the operation is done.
struct TensorArg {
  const void* input = nullptr;
  void* output = nullptr;  ///< may equal input
  Shape shape;
  DataType type = DataType::float32;
};

/// Ranks that work together. Each set makes progress by itself.
enum class ProcessSetId : int {};
inline constexpr ProcessSetId kGlobalProcessSet{0};

struct ReduceOptions {
  ReduceOp op = ReduceOp::average;
  Scaling scaling{};
  ProcessSetId process_set = kGlobalProcessSet;
};

/// One operation under way. Copies name the same operation; dropping it does not cancel anything.
class Handle {
 public:
  Handle() = default;
  [[nodiscard]] bool valid() const noexcept { return operation_ != nullptr; }
  [[nodiscard]] const std::string& name() const;

  /// These need no engine: one that ends completes its operations with `cancelled`.
  [[nodiscard]] bool poll() const;
  /// As Engine::synchronize().
  std::vector<std::size_t> wait() const;

 private:
  friend class Engine;
  [[nodiscard]] runtime::Operation& operation() const;
  explicit Handle(std::shared_ptr<runtime::Operation> operation)
      : operation_(std::move(operation)) {}

  std::shared_ptr<runtime::Operation> operation_;
};

struct EngineOptions {
  /// Allreduces that are ready together are fused into operations of up to this many bytes; none
  /// that is larger by itself than an eighth of it is. 0 turns fusion off.
  /// Negative: KOLO_FUSION_THRESHOLD, else 16 MiB.
  std::int64_t fusion_bytes = -1;

  /// After this long a submission that other ranks do not join is reported, once a while.
  /// Negative: KOLO_STALL_CHECK_TIME_SECONDS, else 60 s. Zero: never.
  std::chrono::milliseconds stall_warning{-1};

  /// After this long it fails with `timeout` on the ranks that wait.
  /// Negative: KOLO_STALL_SHUTDOWN_TIME_SECONDS, else the timeout of the Context
  /// (ContextOptions::timeout). Zero: never.
  std::chrono::milliseconds stall_shutdown{-1};

  /// Chrome trace of all ranks, begun at once. Empty: KOLO_TIMELINE, else none.
  std::string timeline{};
};

/// Errors: a name that is in flight already, an unknown process set, a set without this rank, bad
/// splits: invalid_argument at the caller. Ranks that disagree (operation, shape, type, reduction,
/// factors, root): invalid_argument from synchronize() on every rank, naming the operation, ranks
/// and difference; the engine stays usable. A rank that is gone: peer_lost, from then on.
///
/// All members may be called from any thread. Names are per process set. An empty name stands for
/// the operation's kind and a running number: such operations must be submitted in the same order
/// on every rank.
class Engine {
 public:
  /// Collective over `parent`, which stays free for other uses and must outlive the engine.
  explicit Engine(Communicator& parent, EngineOptions options = {});
  explicit Engine(Context& context, EngineOptions options = {})
      : Engine(context.world(), std::move(options)) {}
  /// Not collective. Operations under way end with `cancelled`.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // --- operations -------------------------------------------------------------------------------
  Handle allreduce_async(const std::string& name, TensorArg tensor,
                         const ReduceOptions& options = {});
  /// All tensors are negotiated together and complete together.
  Handle grouped_allreduce_async(const std::string& name, std::vector<TensorArg> tensors,
                                 const ReduceOptions& options = {});
  /// `output` receives rows_of_rank(shape[0], …) rows. sum and average only.
  Handle reducescatter_async(const std::string& name, TensorArg tensor,
                             const ReduceOptions& options = {});
  /// shape[0] may differ between ranks. `output` is called on a thread of the engine.
  Handle allgather_async(const std::string& name, const void* input, Shape shape, DataType type,
                         OutputAllocator output, ProcessSetId set = kGlobalProcessSet);
  /// `root` is a rank of the whole job, also in process sets.
  Handle broadcast_async(const std::string& name, void* data, Shape shape, DataType type, int root,
                         ProcessSetId set = kGlobalProcessSet);
  /// splits[r] rows go to member r; empty = equal parts. `output` is called on a thread of the
  /// engine.
  Handle alltoall_async(const std::string& name, const void* input, Shape shape, DataType type,
                        std::vector<std::size_t> splits, OutputAllocator output,
                        ProcessSetId set = kGlobalProcessSet);
  Handle barrier_async(ProcessSetId set = kGlobalProcessSet);

  [[nodiscard]] bool poll(const Handle& handle) const { return handle.poll(); }
  /// Waits for the end and throws what went wrong. Returns what each rank contributed: elements
  /// for allgather, rows for alltoall, nothing otherwise. May be called again.
  std::vector<std::size_t> synchronize(const Handle& handle) { return handle.wait(); }

  void allreduce(const std::string& name, TensorArg tensor, const ReduceOptions& options = {}) {
    synchronize(allreduce_async(name, std::move(tensor), options));
  }
  void barrier(ProcessSetId set = kGlobalProcessSet) { synchronize(barrier_async(set)); }

  /// This rank has no more data. Until all ranks of the set have said so it contributes zeros to
  /// the others' allreduces (averages still divide by the full size) and takes part in their
  /// barriers; other operations fail on their callers. Returns the last rank that joined.
  int join(ProcessSetId set = kGlobalProcessSet);

  // --- process sets -----------------------------------------------------------------------------
  /// Collective over all ranks, with the same list on each. Throws already_exists.
  ProcessSetId add_process_set(const std::vector<int>& ranks);
  /// Collective over all ranks. False for the global set and for one that does not exist.
  bool remove_process_set(ProcessSetId set);
  /// Ranks of the whole job. Throws invalid_argument for an unknown set.
  [[nodiscard]] std::vector<int> ranks_of(ProcessSetId set) const;
  [[nodiscard]] bool is_member(ProcessSetId set) const;
  [[nodiscard]] std::vector<ProcessSetId> process_sets() const;
  /// Members of the set, and this rank's place among them (-1 if it is none).
  [[nodiscard]] int size(ProcessSetId set) const;
  [[nodiscard]] int rank(ProcessSetId set) const;

  // --- the same operations every step -----------------------------------------------------------
  /// A communicator of the set's own, for work that needs no negotiation. Collective over the set.
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(
      ProcessSetId set = kGlobalProcessSet);

  // --- timeline ---------------------------------------------------------------------------------
  /// Collective over all ranks: from now on every rank's operations are recorded in `path`, a
  /// Chrome trace that can be read at any moment. Throws io, failed_precondition if one runs.
  void start_timeline(const std::string& path);
  /// Collective over all ranks. Does nothing if none runs.
  void stop_timeline();

 private:
  /// Kolo's other modules reach further.
  friend struct runtime::Internals;
  struct State;
  [[nodiscard]] const std::shared_ptr<runtime::Timeline>& timeline() const noexcept;
  [[nodiscard]] std::shared_ptr<runtime::SetEngine> find(ProcessSetId set) const;
  /// Kept by the caller for as long as it uses the set, which another thread may remove.
  [[nodiscard]] std::shared_ptr<runtime::SetEngine> member(ProcessSetId set) const;
  Handle submit(ProcessSetId set, std::shared_ptr<runtime::Operation> operation);

  std::unique_ptr<State> state_;
};

/// The engine of the default Context. Made at the first call, which is collective over world();
/// ended by shutdown().
[[nodiscard]] Engine& engine();

}  // namespace kolo

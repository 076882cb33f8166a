// One operation of a communicator in three steps: begin it, advance it from time to time, complete
// it. The caller can do other work in between.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/group.h"
#include "kolo/communicator.h"

namespace kolo::comm {

/// One operation at a time; until it is done, nothing else may be called on the communicator.
/// One thread at a time, as the communicator itself.
class Deferred {
 public:
  /// The communicator must outlive it.
  explicit Deferred(Communicator& communicator);

  /// Whether the following works here: all ranks on one host, more than one.
  [[nodiscard]] bool is_possible() const noexcept { return group_.can_post(); }

  /// Begins an operation and returns: a meeting where everybody shows `bytes` (up to 48), or an
  /// allreduce in place of memory that allocate() gave on every rank (not adasum).
  void begin_meeting(const void* mine, std::size_t bytes);
  void begin_allreduce(void* data, std::size_t count, DataType type, ReduceOp op, Scaling scaling);
  /// The sum of blocks in the order of a tree (tree_allreduce.h), which must outlive it.
  void begin_tree_allreduce(void* blocks, std::size_t count, DataType type, double postscale,
                            const TreeOrder& order);

  /// Does this rank's part if all ranks have begun; true when that is done. Does not wait. The
  /// other parts of an allreduce are done when the next operation on this communicator is.
  bool advance();
  /// Waits until all ranks have begun.
  void await();
  /// As advance(), and waits for the others to begin.
  void complete();
  /// What `rank` showed at the meeting that is done.
  [[nodiscard]] const void* shown_by(int rank) const {
    return shown_.at(static_cast<std::size_t>(rank));
  }

 private:
  enum class Kind { none, meeting, allreduce };

  void begin(Card card, const Reduction& how, std::uint64_t salt);

  Group& group_;
  Kind kind_ = Kind::none;
  std::size_t bytes_ = 0;  // of what is shown at a meeting
  std::size_t count_ = 0;  // of an allreduce
  Reduction how_;
  std::vector<const void*> shown_;  // by rank, after a meeting
};

}  // namespace kolo::comm

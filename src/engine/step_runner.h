// One rank's way through the items of a step: the meeting at its beginning, then each item.
//
// A step begins with a meeting of one word per rank: all have the same plan, and who has joined.
// Items follow in order. Where the communicator allows it (comm/deferred.h), an item that is an
// allreduce is *shown* to the other ranks first and done when all have shown it; otherwise it is
// done at once, together with all others.
//
// A runner has no lock. It belongs to one thread at a time: the owner of the pipeline, its helper,
// or a thread that has joined. The pipeline hands it from one to the next under its own mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/deferred.h"
#include "engine/step_work.h"
#include "kolo/communicator.h"

namespace kolo::runtime {

class StepRunner {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Now = Time (*)();

  /// `ranks[i]` is what messages call member i. Communicator and work must outlive it.
  StepRunner(Communicator& communicator, std::vector<int> ranks, StepWork& work, Now now);

  [[nodiscard]] const StepPlan& plan() const noexcept { return plan_; }
  void set_plan(StepPlan plan) { plan_ = std::move(plan); }

  /// Whether items can be shown first and done later, and whether this one can.
  [[nodiscard]] bool can_defer() const noexcept { return can_defer_; }
  [[nodiscard]] bool can_defer(std::size_t item) const {
    return can_defer_ && item < plan_.items.size() && plan_.items[item].allreduce.has_value();
  }

  /// Goes as far towards the end of `item`, which can_defer(), as is possible without waiting for
  /// other ranks; before the first item that is the meeting. When the item is done: the moment at
  /// which its reduction began.
  std::optional<Time> try_run(std::size_t item);

  /// What this rank brings to a step. A refusal makes the step fail on all ranks.
  enum class Brings { data, zeros, refusal };
  /// Completes the meeting, if it has not been yet.
  void begin(Brings what = Brings::data);
  /// Runs `item` to its end, after begin(). The moment at which it began: for an allreduce that can
  /// be deferred, without the time spent waiting for ranks that are not so far.
  Time run(std::size_t item);
  /// After begin(): nobody brings anything but zeros.
  [[nodiscard]] bool everybody_joined() const noexcept { return everybody_joined_; }

  /// The next call is about the next step, whatever became of this one.
  void end() noexcept {
    has_begun_ = false;
    shown_ = Shown::nothing;
  }

 private:
  /// What a rank says at the meeting.
  struct Greeting {
    std::uint64_t fingerprint = 0;
    std::uint64_t has_joined = 0;
  };
  static_assert(sizeof(Greeting) == 2 * sizeof(std::uint64_t));

  void greet(Brings what);
  void hear_greetings();
  void show(std::size_t item);

  Communicator& communicator_;
  const std::vector<int> ranks_;
  StepWork& work_;
  const Now now_;
  comm::Deferred deferred_;
  const bool can_defer_;
  StepPlan plan_;
  std::vector<Greeting> greetings_;  // by rank
  bool has_begun_ = false;
  enum class Shown { nothing, greeting, item } shown_ = Shown::nothing;
  bool everybody_joined_ = false;
};

}  // namespace kolo::runtime

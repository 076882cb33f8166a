// The same sequence of collectives in every step, without negotiation.
//
// Ranks that do the same things in the same order need nobody to tell them what comes next: the
// collectives themselves are the meeting. A *step* is a sequence of *items*, run in order over a
// communicator of its own. An item is run once this rank has marked it as ready and the one before
// is done.
//
// Who runs items while the owner still works on later ones? Inside a host, the owner itself: an
// item is shown to the others when it is ready, and whenever the owner comes by (mark_ready,
// progress) it does its part of those that all have shown. Nobody waits and no thread competes with
// backward for the core. Where that does not work (wires, items that are more than an allreduce),
// or where use_helper() says so, a helper thread runs them. What is left is run in finish(): the
// tail of a step needs no other thread.
//
// A rank that has joined stands in with zeros until all have.
#pragma once

#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/set_engine.h"
#include "engine/step_runner.h"
#include "engine/step_work.h"
#include "kolo/engine.h"

namespace kolo::runtime {

class StepPipeline final : private SetEngine::Guest {
 public:
  /// What a pipeline works with.
  struct Environment {
    std::unique_ptr<Communicator> communicator;  ///< the pipeline's own
    std::vector<int> ranks;                      ///< of the job, by member
    std::shared_ptr<Timeline> timeline;
    /// Whose joins it stands in for; null: nobody's.
    std::shared_ptr<SetEngine> set{};
    StepRunner::Now now = &std::chrono::steady_clock::now;
  };

  /// `work` must outlive it.
  StepPipeline(Environment environment, StepWork& work);
  /// Over a process set. Collective over the set.
  StepPipeline(Engine& engine, ProcessSetId set, StepWork& work);
  ~StepPipeline() override;

  /// Item `item` of this step is complete on this rank. From any thread; must not be repeated.
  void mark_ready(std::size_t item);
  /// Does what can be done without waiting, if it is the owner who does it. From time to time.
  void progress();

  /// Everything is complete on this rank: does what is left and ends the step. Throws what went
  /// wrong in any item; the step is over then too.
  void finish();

  /// Another plan than StepWork::plan() gave, the same on every rank. Between steps.
  void set_plan(StepPlan plan);

  /// Inside a host: the helper runs items during the step, not the owner. That is faster where it
  /// has a core of its own. The same bits, and ranks may differ. Between steps.
  void use_helper(bool on);
  /// Whether that makes a difference. Once there is a plan.
  [[nodiscard]] bool can_choose_helper() const { return runner_.can_defer(0); }

  /// For the owner's own collectives, between finish() and the next mark_ready().
  [[nodiscard]] Communicator& communicator() noexcept { return *communicator_; }

  /// For the timeline: something was copied for the item `name`, from `begin` until now. Only to be
  /// called while is_recorded().
  [[nodiscard]] bool is_recorded() const noexcept { return timeline_->is_on(); }
  void note_copy(std::string_view name, std::chrono::steady_clock::time_point begin,
                 std::size_t bytes);

  /// How long the items of the steps took since the last call (without waiting for ranks that had
  /// not come, where that can be told), and how long finish() took (with it).
  struct Times {
    std::chrono::nanoseconds total{0};
    std::chrono::nanoseconds in_finish{0};
    int steps = 0;
  };
  Times take_times();

 private:
  using Time = StepRunner::Time;

  void helper_main();
  void stand_in() override;
  [[nodiscard]] bool is_ready(std::size_t item) const KOLO_REQUIRES(mutex_) {
    return item < ready_.size() && ready_[item];
  }
  /// Who runs an item that becomes ready before finish().
  [[nodiscard]] bool is_helpers(std::size_t item) const KOLO_REQUIRES(mutex_) {
    return prefers_helper_ || !runner_.can_defer(item);
  }
  void note_done(std::size_t item, Time start) KOLO_REQUIRES(mutex_);
  void note_ready(std::size_t item, Time when) KOLO_REQUIRES(mutex_);

  const pid_t owner_ = ::getpid();
  const std::shared_ptr<SetEngine> set_;
  const std::shared_ptr<Timeline> timeline_;
  const std::unique_ptr<Communicator> communicator_;
  const StepRunner::Now now_;
  StepWork& work_;

  /// Used by one thread at a time: the helper while is_running_; the owner under mutex_ during a
  /// step, and without it in finish(), which waits for the helper and keeps it from going on
  /// (is_finishing_); a thread that has joined, when the owner is in no step.
  StepRunner runner_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<bool> ready_ KOLO_GUARDED_BY(mutex_);        // by item
  std::vector<Time> ready_since_ KOLO_GUARDED_BY(mutex_);  // by item, while there is a timeline
  std::size_t next_ KOLO_GUARDED_BY(mutex_) = 0;           // the first item not done
  bool prefers_helper_ KOLO_GUARDED_BY(mutex_) = false;
  bool is_running_ KOLO_GUARDED_BY(mutex_) = false;  // the helper is inside an item
  bool is_finishing_ KOLO_GUARDED_BY(mutex_) = false;
  bool is_stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  Times times_ KOLO_GUARDED_BY(mutex_);
  std::thread helper_;
};

}  // namespace kolo::runtime

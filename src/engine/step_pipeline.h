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
// Each step begins with a meeting of one word per rank: all have the same plan, and who has joined.
// A rank that has joined stands in with zeros until all have.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/set_engine.h"
#include "kolo/engine.h"

namespace kolo::runtime {

/// What the items of a pipeline are. Its members are called by one thread at a time, in the same
/// order on every rank.
class StepWork {
 public:
  virtual ~StepWork() = default;
  /// Equal on ranks that have the same plan; 0 while there is none.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
  /// Agrees on a plan. Collective.
  virtual void plan(Communicator& communicator) = 0;
  [[nodiscard]] virtual std::size_t items() const = 0;
  /// Collective.
  virtual void run(Communicator& communicator, std::size_t item) = 0;
  /// If the item is nothing but an allreduce in place of memory of the communicator: which. The
  /// same answer on every rank.
  struct Allreduce {
    void* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::float32;
    ReduceOp op = ReduceOp::average;
    Scaling scaling{};
  };
  [[nodiscard]] virtual std::optional<Allreduce> as_allreduce(std::size_t item) const = 0;
  /// For the timeline.
  [[nodiscard]] virtual std::string name_of(std::size_t item) const = 0;
  [[nodiscard]] virtual std::size_t bytes_of(std::size_t item) const = 0;
  /// This rank has joined: what it brings to the coming step is zero.
  virtual void bring_zeros() = 0;
};

class StepPipeline final : private SetEngine::Guest {
 public:
  /// Collective over the set. `work` must outlive it.
  StepPipeline(Engine& engine, ProcessSetId set, StepWork& work);
  ~StepPipeline() override;

  /// Item `item` of this step is complete on this rank. From any thread; must not be repeated.
  void mark_ready(std::size_t item);
  /// Does what can be done without waiting, if it is the owner who does it. From time to time.
  void progress();

  /// Everything is complete on this rank: does what is left and ends the step. Throws what went
  /// wrong in any item; the step is over then too.
  void finish();

  /// Inside a host: the helper runs items during the step, not the owner. That is faster where it
  /// has a core of its own. The same bits, and ranks may differ. Between steps.
  void use_helper(bool on);
  /// Whether that makes a difference. Once there is a plan.
  [[nodiscard]] bool can_choose_helper() const;

  /// For the owner's own collectives, between finish() and the next mark_ready().
  [[nodiscard]] Communicator& communicator() noexcept { return *communicator_; }

  /// For the timeline: something was copied for an item, from `begin` until now. Only to be called
  /// while is_recorded().
  [[nodiscard]] bool is_recorded() const noexcept { return timeline_->is_on(); }
  void note_copy(std::size_t item, std::chrono::steady_clock::time_point begin, std::size_t bytes);

  /// How long the items of the steps took since the last call (without waiting for ranks that had
  /// not come, where that can be told), and how long finish() took (with it).
  struct Times {
    std::chrono::nanoseconds total{0};
    std::chrono::nanoseconds in_finish{0};
    int steps = 0;
  };
  Times take_times();

 private:
  void helper_main();
  /// Who runs an item that becomes ready before finish(). Under mutex_.
  [[nodiscard]] bool is_helpers(std::size_t item) const;
  void stand_in() override;
  void begin(bool has_joined);
  /// What a rank says at the beginning of a step.
  struct Greeting {
    std::uint64_t fingerprint = 0;
    std::uint64_t has_joined = 0;
  };
  static_assert(sizeof(Greeting) == 2 * sizeof(std::uint64_t));
  void greet(bool has_joined);
  void hear_greetings();
  void run_item(std::size_t item);
  void advance();
  void note(std::size_t item, std::chrono::steady_clock::time_point start);
  void note_ready(std::size_t item, std::chrono::steady_clock::time_point when);

  StepWork& work_;
  std::shared_ptr<SetEngine> set_;
  std::shared_ptr<Timeline> timeline_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<Greeting> greetings_;  // by rank, of the thread that runs items

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ready_;  // guarded by mutex_; by item
  /// Guarded by mutex_; by item, while there is a timeline.
  std::vector<std::chrono::steady_clock::time_point> ready_since_;
  std::size_t next_ = 0;         // guarded by mutex_; the first item not done
  bool prefers_helper_ = false;  // guarded by mutex_
  bool has_begun_ = false;       // of the thread that runs items
  /// What has been shown to the others and is not done; of the thread that runs items.
  enum class Shown { nothing, greeting, item } shown_ = Shown::nothing;
  bool is_running_ = false;        // guarded by mutex_; the helper is inside an item
  bool is_finishing_ = false;      // guarded by mutex_
  bool is_stopping_ = false;       // guarded by mutex_
  std::exception_ptr error_;       // guarded by mutex_
  bool everybody_joined_ = false;  // of the thread that runs items
  Times times_;                    // guarded by mutex_
  std::thread helper_;
};

}  // namespace kolo::runtime

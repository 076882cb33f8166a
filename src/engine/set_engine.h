// The engine of one process set on one rank: what was submitted here, the thread that negotiates
// and executes, and, on the set's first rank, the Coordinator.
//
// Each set has a communicator and a thread of its own, so sets wait for nobody outside them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "engine/coordinator.h"
#include "engine/executor.h"
#include "engine/operation.h"
#include "engine/star.h"
#include "engine/timeline.h"
#include "kolo/communicator.h"

namespace kolo::runtime {

class SetEngine {
 public:
  /// Collective over `parent`'s `ranks`; also called by the other ranks of `parent`, which get an
  /// engine that is_member() denies. `world_ranks[i]` is the rank in the job of member i.
  SetEngine(Communicator& parent, std::vector<int> world_ranks, int id,
            const Coordinator::Options& options, std::shared_ptr<Timeline> timeline);
  /// Ends operations under way with `cancelled`.
  ~SetEngine();
  SetEngine(const SetEngine&) = delete;
  SetEngine& operator=(const SetEngine&) = delete;

  [[nodiscard]] bool is_member() const noexcept { return data_ != nullptr; }
  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int rank() const noexcept { return data_ == nullptr ? -1 : data_->rank(); }

  /// Gives a name to an operation that has none, checks that the name is free, and hands the
  /// operation over. Throws invalid_argument, or what has ended the set.
  void submit(const std::shared_ptr<Operation>& operation);
  int join();

  /// A new communicator of the members. Collective over them.
  std::unique_ptr<Communicator> make_communicator();
  /// Called for each join(), on the joining thread, until all members have joined; see
  /// StepPipeline.
  class Guest {
   public:
    virtual ~Guest() = default;
    /// Takes part with zeros until all have joined.
    virtual void stand_in() = 0;
  };
  void add_guest(Guest* guest);
  void remove_guest(Guest* guest);

  /// Where the leader writes the events of all members; null: nowhere.
  void set_trace(std::unique_ptr<TraceFile> file);
  /// Has the thread look at what is to be done, or carried away.
  void nudge() noexcept;

 private:
  void run();
  /// One sleep and what is to be done after it. False when the engine ends.
  bool take_turn();
  void negotiate(const Star::News& news);
  void take_submissions();
  void send_submissions(const std::vector<std::shared_ptr<Operation>>& operations);
  void send_decisions(const std::vector<Decision>& decisions);
  void note_join();
  /// Until `done`, or until the wait is interrupted (base/interrupt.h).
  template <class Done>
  void wait_to_join(MutexLock& lock, Done done);
  void carry_timeline();
  void carry_out(const Decision& decision);
  void execute(const Decision& decision);
  void note_lost(int member, const std::string& reason);
  /// Ends the set: everything under way and to come fails with `why`.
  void end(const Error& why);
  std::shared_ptr<Operation> take(const std::string& name);
  [[nodiscard]] bool leads() const noexcept { return data_->rank() == 0; }

  const std::vector<int> ranks_;
  const int id_;
  std::unique_ptr<Communicator> data_;     // used by the engine's thread
  std::unique_ptr<Communicator> control_;  // used by callers, to make more communicators
  std::shared_ptr<Timeline> timeline_;
  const bool carries_timeline_;
  std::unique_ptr<TraceFile> trace_ KOLO_GUARDED_BY(mutex_);
  std::optional<Star> star_;
  std::optional<Coordinator> coordinator_;  // on the leader
  std::optional<Executor> executor_;
  std::vector<Decision> decisions_;  // of the engine's thread
  std::vector<Lost> losses_;         // likewise

  mutable Mutex mutex_;
  CondVar join_changed_;
  std::unordered_map<std::string, std::shared_ptr<Operation>> in_flight_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Operation>> submitted_ KOLO_GUARDED_BY(mutex_);
  std::unordered_map<int, std::uint64_t> unnamed_ KOLO_GUARDED_BY(mutex_);  // by kind
  std::optional<Error> ended_ KOLO_GUARDED_BY(mutex_);
  bool is_joining_ KOLO_GUARDED_BY(mutex_) = false;
  bool join_announced_ KOLO_GUARDED_BY(mutex_) = false;
  bool join_noted_ KOLO_GUARDED_BY(mutex_) = false;  // the leader knows
  std::optional<int> last_joined_ KOLO_GUARDED_BY(mutex_);
  std::vector<Guest*> guests_ KOLO_GUARDED_BY(mutex_);
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  Mutex control_mutex_;
  Mutex alone_mutex_;  // of one member: callers execute themselves
  std::thread thread_;
};

}  // namespace kolo::runtime

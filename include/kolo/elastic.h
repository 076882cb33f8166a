// Training that goes on when ranks come and go (docs/elastic-runs.md).
//
//   kolo::elastic::State state;
//   state.add(step).add(weights);                      // what all ranks have alike
//   kolo::elastic::run(state, [&](kolo::elastic::State& state) {
//     while (step < 1000) {
//       train_one_step();                              // collectives as ever
//       ++step;
//       state.commit();                                // the end of a step
//     }
//   });
//
// started by `kolo run --min-np 2 --max-np 8 ./train`. When a rank is lost, the others keep their
// processes, go back to the last commit, form a new group and enter the function again. New ranks
// enter at the end of a step and get the state from the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kolo/communicator.h"
#include "kolo/context.h"

namespace kolo::elastic {

/// One thing that a State keeps: as bytes, and where that is too slow, in other ways too.
class Part {
 public:
  virtual ~Part() = default;
  [[nodiscard]] virtual std::string bytes() = 0;
  virtual void load(const std::string& bytes) = 0;

  /// Remembers the value as it is.
  virtual void save() { saved_ = bytes(); }
  /// Remembers the value as save() does, or, where it is large, only that it is the one to go back
  /// to: see State::commit_in_place().
  virtual void mark() { save(); }
  /// Takes the remembered value.
  virtual void restore() { load(saved_); }
  /// Root's value, on every rank of `group`. Collective.
  virtual void broadcast(Communicator& group, int root);
  /// Before a commit: other ranks keep what only this one has of the value. Collective. Returns
  /// whether there is such a thing, alike on every rank; what was handed over counts with save().
  virtual bool hand_over(Communicator& /*group*/) { return false; }
  /// Before ranks leave, and before a commit goes to disk: every rank gets what others have handed
  /// over. Collective.
  virtual void gather(Communicator& /*group*/) {}
  /// A group was formed, also the first one, and the value is that of the job.
  virtual void enter(Communicator& /*group*/) {}

 private:
  std::string saved_;
};

/// What survives a change of the group: what all ranks have alike at the end of a step.
class State {
 public:
  State();
  virtual ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // --- what it keeps; the same on every rank, in the same order ---------------------------------
  State& add(std::unique_ptr<Part> part);
  /// Anything that can be turned into bytes and back.
  State& add(std::function<std::string()> get, std::function<void(const std::string&)> set);
  State& add(std::string& text);
  /// Numbers, and structures of them. The variable must outlive the state.
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>) State& add(T& value) {
    return add(
        [&value] { return std::string(reinterpret_cast<const char*>(&value), sizeof value); },
        [&value](const std::string& bytes) { copy_into(&value, bytes, sizeof value); });
  }
  /// Of any length.
  template <class T>
  requires(std::is_trivially_copyable_v<T> &&
           !std::is_pointer_v<T>) State& add(std::vector<T>& values) {
    return add_memory([&values] { return std::as_writable_bytes(std::span(values)); },
                      [&values](std::size_t bytes) { values.resize(bytes / sizeof(T)); });
  }

  // --- its life ---------------------------------------------------------------------------------
  /// The end of a step: remembers everything. Inside run() it is collective, and where the group
  /// is to change it does not return: the function is left and entered again.
  void commit();
  /// As commit(), but parameters and what the optimizer keeps of them are not copied. For loops in
  /// which nothing can fail between the optimizer's step and this: call it directly after step(),
  /// and no collective operation in between. A rank that is lost before finds them unchanged.
  /// Where that was not so, restore() throws failed_precondition.
  void commit_in_place();
  /// Back to the last commit.
  void restore();
  /// Everybody takes the state of the rank with the most commits. Collective over world(). Nothing
  /// is moved when all are at the same commit.
  void sync();
  /// Calls what register_reset_callbacks() was given.
  void on_reset();
  /// Called on every rank of each new group but the first, when it is formed, before sync().
  void register_reset_callbacks(std::vector<std::function<void()>> callbacks);

  /// Commits since the start of the job.
  [[nodiscard]] std::uint64_t commits() const noexcept;

 private:
  friend class Session;
  State& add_memory(std::function<std::span<std::byte>()> memory,
                    std::function<void(std::size_t bytes)> resize);
  static void copy_into(void* to, const std::string& bytes, std::size_t expected);
  void save();
  void end_step();
  void begin(Communicator& group, int root);
  void share(bool is_committed);

  struct Contents;
  std::unique_ptr<Contents> contents_;
};

enum class Ending {
  finished,  ///< the function has returned, on every rank of the group
  left,      ///< this process was asked to go and has left the job at the end of a step
};

/// Calls init() and `function`, and both again for each new group, until the function returns or
/// this process is asked to go. What holds ranks, communicators, engines or their memory must be
/// made inside of the function. Of `finished`, the Context stays; of `left`, there is none.
///
/// Without an elastic launcher, a lost rank is an error as ever. Other errors than peer_lost, and
/// the timeout of an operation that a rank does not submit to an engine, are passed on and end the
/// rank. SIGTERM, and the signal of `kolo run --notice-signal`, ask a process to go.
Ending run(State& state, const std::function<void(State&)>& function,
           const ContextOptions& options = {});

}  // namespace kolo::elastic

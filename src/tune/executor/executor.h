// The interface of executors, which run the trials of a study.
//
// The controller starts a run, answers its reports and asks it to stop. The executor tells what
// happens by messages in an Inbox.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "kolo/tune/session.h"
#include "kolo/tune/trainable.h"
#include "tune/study/resource_pool.h"

namespace kolo::tune {

/// One run of a trial. A trial that is restarted has several, and messages of its old runs are
/// ignored.
struct RunId {
  std::int64_t trial = 0;
  std::int64_t run = 0;
  bool operator==(const RunId&) const = default;
};

struct StartOrder {
  RunId id;
  std::string trial_id, trial_name;
  Value config;
  std::filesystem::path directory;
  std::optional<std::filesystem::path> checkpoint;
  std::int64_t iteration = 0;  ///< reports of earlier runs, up to the checkpoint
  Grant grant;
};

/// The answer to a report: what the trial does next.
enum class Reply { proceed, stop, pause };

struct Answer {
  Reply reply = Reply::proceed;
  bool save = false;  ///< a checkpoint is wanted
};

struct Message {
  enum class Kind {
    report,      ///< metrics, perhaps with a checkpoint; waits for an answer
    checkpoint,  ///< of the iteration reported last; waits for an answer
    ended,       ///< the run is over
    shrunk,      ///< no more ranks are left of it than resize() wanted
    poke,        ///< wakes the controller, which looks for requests
    room,        ///< more trials fit at once than before
  };
  Kind kind = Kind::poke;
  RunId id;
  Value metrics{};
  std::filesystem::path checkpoint{};
  /// In a report: the trial can save a checkpoint whenever it is asked to, as classes can.
  bool saves_on_request = false;
  /// In a report of an elastic trial: which one it is. Ranks that take a step again report again.
  std::optional<std::int64_t> iteration{};
  int trials_at_once = 0;  ///< in `room`
  std::string error{};     ///< in an end: why the run failed; "" = it did not
  /// In an end: SIGTERM or SIGINT ended it, and this study did not send it.
  bool was_terminated = false;
  /// In an end: the allocation that the run was in has ended. The trial continues in another run,
  /// and nothing is said about it to anybody.
  bool was_cut_off = false;
  std::optional<Value> last_words{};  ///< in an end: the result that the run left
  std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
};

/// A queue of messages with many senders and one reader.
class Inbox {
 public:
  /// Called with each message before it is queued, one call at a time. Set it before the first.
  std::function<void(const Message&)> witness{};
  /// Called by take() and pause() instead of waiting: a simulation moves its clock to the next
  /// event, or to the deadline, and puts the messages of that time. Set it before the first take().
  std::function<void(Deadline)> simulate{};

  /// Returns the number of the message, from 1 on.
  std::uint64_t put(Message message) {
    bool was_empty = false;
    std::uint64_t number = 0;
    {
      const MutexLock lock(mutex_);
      if (witness) witness(message);
      was_empty = messages_.empty();
      messages_.push_back(std::move(message));
      number = taken_ + messages_.size();
    }
    if (was_empty) arrived_.notify_one();
    return number;
  }

  /// The reader has it, and works on it now or has done so.
  [[nodiscard]] bool has_taken(std::uint64_t number) {
    const MutexLock lock(mutex_);
    return number <= taken_;
  }

  [[nodiscard]] bool empty() {
    const MutexLock lock(mutex_);
    return messages_.empty();
  }

  /// Waits until the deadline, and takes nothing. A simulation may come back earlier.
  void pause(Deadline deadline) const {
    if (simulate)
      simulate(deadline);
    else
      std::this_thread::sleep_until(deadline.when());
  }

  /// Takes all messages, in order. Waits for the first one until the deadline.
  std::vector<Message> take(Deadline deadline) {
    if (simulate && empty()) simulate(deadline);
    MutexLock lock(mutex_);
    if (!simulate)
      arrived_.wait_until(lock, deadline.when(),
                          [this]() KOLO_REQUIRES(mutex_) { return !messages_.empty(); });
    std::vector<Message> taken;
    taken.swap(messages_);
    taken_ += taken.size();
    return taken;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::vector<Message> messages_ KOLO_GUARDED_BY(mutex_);
  std::uint64_t taken_ KOLO_GUARDED_BY(mutex_) = 0;
};

/// Why a trial failed that ran longer than its time limit.
inline constexpr std::string_view kTimeoutFailure = "F_timeout";

/// What an executor is told about the study whose trials it runs.
struct ExecutorPlace {
  std::shared_ptr<Inbox> inbox;
  std::string study;                ///< its first name: it may have been renamed
  std::string unique_name;          ///< a name that no other study has, the same after a resume
  std::filesystem::path directory;  ///< of the study; also the lock of its processes
  /// How long a run that was asked to stop may take before it is killed.
  std::chrono::milliseconds grace{5000};
};

/// All calls come from the controller's thread and do not block.
class TrialExecutor {
 public:
  virtual ~TrialExecutor() = default;
  /// Starts a run. Where that fails, the executor sends an `ended` message with the error.
  virtual void start(StartOrder order) = 0;
  virtual void answer(RunId id, Answer answer) = 0;
  /// Asks a run to stop: its should_stop() is true from now on. The controller calls kill() when
  /// the grace time is over.
  virtual void stop(RunId id) = 0;
  /// The study is told to end and will be resumed: all runs are stopped after this call. Runs that
  /// do not need the study may go on, and be found again when it is resumed.
  virtual void study_is_interrupted() {}
  /// Ends a run at once, where can_kill() is true.
  virtual void kill(RunId id) = 0;
  /// Gives an elastic run another number of ranks. A `shrunk` message follows when those that are
  /// too many have gone.
  virtual void resize(RunId /*id*/, int /*ranks*/) {}
  /// The controller has taken the end of this run and will not mention it again.
  virtual void forget(RunId id) = 0;
  /// False: a run that does not stop by itself is left behind.
  [[nodiscard]] virtual bool can_kill() const noexcept = 0;
  /// True: the executor ends runs that take longer than their time limit; else the controller does.
  [[nodiscard]] virtual bool limits_time() const noexcept { return false; }
};

/// When trials that are classes save checkpoints: every `freq` steps (0 = when needed), and at
/// their end.
struct ClassPolicy {
  std::int64_t freq = 0;
  bool at_end = false;
};

std::unique_ptr<TrialExecutor> make_thread_executor(std::shared_ptr<Inbox> inbox,
                                                    Runnable trainable, ClassPolicy policy);

/// Runs a trainable: calls a function once, and a class step by step.
void run_trainable(const Runnable& trainable, const Config& config, Session& session,
                   const ClassPolicy& policy);

/// A session with the functions that the loop over the steps of a class needs.
class SessionBase : public Session {
 public:
  /// Saves a checkpoint of the iteration that was reported last.
  virtual void save_now(const std::function<void(const std::filesystem::path&)>& write) = 0;
  [[nodiscard]] virtual bool pausing() const = 0;
  /// Tells the study that this trial can save whenever it is asked to.
  virtual void offer_saves() = 0;

 protected:
  /// Throws invalid_argument.
  static void check_metrics(const Value& metrics);
};

/// As long as this lives, tune::session() returns `session` in the calling thread.
class CurrentSession {
 public:
  explicit CurrentSession(Session& session);
  ~CurrentSession();
  CurrentSession(const CurrentSession&) = delete;
  CurrentSession& operator=(const CurrentSession&) = delete;
};

}  // namespace kolo::tune

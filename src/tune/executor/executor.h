// Where trials run. The controller says start, answers reports and asks for ends; executors say
// what happened, by messages into an Inbox.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "kolo/tune/session.h"
#include "kolo/tune/trainable.h"
#include "tune/study/resource_pool.h"

namespace kolo::tune {

/// One run of a trial: a trial that is restarted has several. Messages of old runs are not
/// listened to.
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
  std::int64_t iteration = 0;  ///< reports before this run
  Grant grant;
};

/// What a trial is told after a report.
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
    poke,        ///< look around: requests, signals
  };
  Kind kind = Kind::poke;
  RunId id;
  Value metrics{};
  std::filesystem::path checkpoint{};
  /// Of a report: the trial can save at any time when asked (classes can).
  bool saves_on_request = false;
  std::string error{};                ///< of an end; "" = it ended well
  std::optional<Value> last_words{};  ///< of an end: a last report
  std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
};

/// Many senders, one reader.
class Inbox {
 public:
  /// Shown every message before it is put in, one at a time; to be set before there are any.
  std::function<void(const Message&)> witness{};

  void put(Message message) {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      if (witness) witness(message);
      was_empty = messages_.empty();
      messages_.push_back(std::move(message));
    }
    if (was_empty) arrived_.notify_one();
  }

  [[nodiscard]] bool empty() {
    const std::lock_guard lock(mutex_);
    return messages_.empty();
  }

  /// All that have come, in order; waits for the first until the deadline.
  std::vector<Message> take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, deadline.when(), [this] { return !messages_.empty(); });
    std::vector<Message> taken;
    taken.swap(messages_);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Message> messages_;
};

/// All calls come from the controller's thread and do not block.
class TrialExecutor {
 public:
  virtual ~TrialExecutor() = default;
  /// A start that fails is an `ended` message.
  virtual void start(StartOrder order) = 0;
  virtual void answer(RunId id, Answer answer) = 0;
  /// The trial shall end: its should_stop() is true from now on. After the grace time it is killed
  /// where that can be done.
  virtual void stop(RunId id) = 0;
  /// At once, where that can be done.
  virtual void kill(RunId id) = 0;
  /// Its end was seen: nothing more will be said about this run.
  virtual void forget(RunId id) = 0;
  /// Whether kill() works: otherwise a run that does not end is left behind.
  [[nodiscard]] virtual bool can_kill() const noexcept = 0;
};

/// When classes are asked for checkpoints.
struct ClassPolicy {
  std::int64_t freq = 0;
  bool at_end = false;
};

std::unique_ptr<TrialExecutor> make_thread_executor(std::shared_ptr<Inbox> inbox,
                                                    Runnable trainable, ClassPolicy policy);

/// Runs the trainable inside a session: functions as they are, classes step by step.
void run_trainable(const Runnable& trainable, const Config& config, Session& session,
                   const ClassPolicy& policy);

/// A session that can also be asked by the class loop.
class SessionBase : public Session {
 public:
  /// A checkpoint of the iteration reported last.
  virtual void save_now(const std::function<void(const std::filesystem::path&)>& write) = 0;
  [[nodiscard]] virtual bool pausing() const = 0;
  /// Says that save_now can be called whenever it is asked for.
  virtual void offer_saves() = 0;
};

/// Makes `session` that of the calling thread, for tune::session().
class CurrentSession {
 public:
  explicit CurrentSession(Session& session);
  ~CurrentSession();
  CurrentSession(const CurrentSession&) = delete;
  CurrentSession& operator=(const CurrentSession&) = delete;
};

}  // namespace kolo::tune

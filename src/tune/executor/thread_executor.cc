// Trials as threads of this process: nothing is cheaper, and nothing is isolated.
//
// Threads are kept and used again. Reports wait on an atomic that the controller's answer changes.
// A run that the controller has given up may still report: it is told to stop then, because nobody
// answers any more. A process that a trial forks has a copy of its thread, and nobody to answer
// either: it cannot report, and ends where the trial would.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <thread>
#include <unordered_map>

#include "base/errors.h"
#include "base/log.h"
#include "tune/executor/executor.h"
#include "tune/trial/checkpoints.h"

namespace kolo::tune {
namespace {

namespace fs = std::filesystem;

/// What the controller and the trial's thread share; outlives both.
class ThreadSession final : public SessionBase {
 public:
  ThreadSession(Inbox& inbox, StartOrder order)
      : inbox_(inbox), order_(std::move(order)), iteration_(order_.iteration) {}

  bool try_report(const Value& metrics) override {
    check_metrics(metrics);
    if (over_) throw Stopped{};
    Message message{Message::Kind::report, order_.id};
    message.metrics = metrics;
    message.checkpoint = std::exchange(staged_, {});
    message.saves_on_request = saves_on_request_;
    ask(std::move(message));
    ++iteration_;
    over_ = reply_ != Reply::proceed;
    return !over_;
  }

  void report_last(const Value& metrics) override {
    check_metrics(metrics);
    if (over_) throw Stopped{};
    result_ = metrics;
  }

  void save_checkpoint(const std::function<void(const fs::path&)>& write) override {
    staged_ = make_checkpoint(order_.directory, iteration_ + 1, write);
  }
  void save_now(const std::function<void(const fs::path&)>& write) override {
    Message message{Message::Kind::checkpoint, order_.id};
    message.checkpoint = make_checkpoint(order_.directory, iteration_, write);
    const Reply before = reply_;
    ask(std::move(message));
    reply_ = before;
  }
  void offer_saves() override { saves_on_request_ = true; }

  [[nodiscard]] bool should_stop() const override { return over_ || stop_wanted_; }
  [[nodiscard]] bool should_save() const override { return save_; }
  [[nodiscard]] bool pausing() const override { return reply_ == Reply::pause; }
  [[nodiscard]] std::optional<fs::path> checkpoint() const override { return order_.checkpoint; }
  [[nodiscard]] std::int64_t iteration() const override { return iteration_; }
  [[nodiscard]] const std::string& trial_id() const override { return order_.trial_id; }
  [[nodiscard]] const std::string& trial_name() const override { return order_.trial_name; }
  [[nodiscard]] const fs::path& trial_dir() const override { return order_.directory; }

  // The controller's side.
  void answer(Answer answer) {
    answer_ = answer;
    answered_.store(true);
    answered_.notify_one();
  }
  void want_stop() { stop_wanted_ = true; }
  /// Nothing will be answered from now on.
  void let_go() {
    is_let_go_ = true;
    answered_.store(true);
    answered_.notify_one();
  }

  /// In a process that the trial has forked.
  [[nodiscard]] bool is_copy() const noexcept { return ::getpid() != process_; }

  [[nodiscard]] const StartOrder& order() const noexcept { return order_; }
  [[nodiscard]] const fs::path& staged() const noexcept { return staged_; }
  [[nodiscard]] std::optional<Value> take_result() { return std::exchange(result_, std::nullopt); }

 private:
  void ask(Message message) {
    if (is_copy())
      throw_error(ErrorCode::failed_precondition,
                  "a process that trial {} has forked cannot report: the study does not know it; "
                  "report where the trial runs",
                  order_.trial_id);
    answered_.store(false);
    if (!is_let_go_) {
      inbox_.put(std::move(message));
      answered_.wait(false);
    }
    const Answer answer = is_let_go_ ? Answer{Reply::stop} : answer_;
    reply_ = answer.reply;
    save_ = answer.save;
  }

  Inbox& inbox_;
  StartOrder order_;
  std::int64_t iteration_;
  fs::path staged_;
  std::optional<Value> result_;
  bool saves_on_request_ = false, over_ = false, save_ = false;
  Reply reply_ = Reply::proceed;
  std::atomic<bool> stop_wanted_{false};
  Answer answer_;
  std::atomic<bool> answered_{false}, is_let_go_{false};
  const pid_t process_ = ::getpid();
};

/// What the threads share. A trial that does not end keeps its thread and this alive.
struct Pool {
  std::shared_ptr<Inbox> inbox;
  Runnable trainable;
  ClassPolicy policy;
  Mutex mutex{};
  CondVar work{}, left{};
  std::deque<std::shared_ptr<ThreadSession>> waiting KOLO_GUARDED_BY(mutex){};
  int threads KOLO_GUARDED_BY(mutex) = 0;
  int idle KOLO_GUARDED_BY(mutex) = 0;
  int busy KOLO_GUARDED_BY(mutex) = 0;  ///< inside a trainable
  bool closing KOLO_GUARDED_BY(mutex) = false;
};

/// What follows the trial is for the process that has the study.
[[noreturn]] void leave_copy(const std::string& error) {
  if (!error.empty()) std::fputs((error + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(error.empty() ? 0 : 1);
}

void run_one(Pool& pool, ThreadSession& session) {
  Message end{Message::Kind::ended, session.order().id};
  try {
    run_trainable(pool.trainable, session.order().config, session, pool.policy);
    end.last_words = session.take_result();
  } catch (const Stopped&) {
    // As it was told.
  } catch (const std::exception& error) {
    end.error = error.what();
    if (end.error.empty()) end.error = "an exception without a message";
  } catch (...) {
    end.error = "an exception of an unknown type";
  }
  if (session.is_copy()) leave_copy(end.error);
  end.checkpoint = session.staged();
  end.came = std::chrono::steady_clock::now();
  pool.inbox->put(std::move(end));
}

void work(Pool& pool) {
  MutexLock lock(pool.mutex);
  for (;;) {
    ++pool.idle;
    pool.work.wait(lock, [&pool]() KOLO_REQUIRES(pool.mutex) {
      return pool.closing || !pool.waiting.empty();
    });
    --pool.idle;
    if (pool.waiting.empty()) break;
    auto session = std::move(pool.waiting.front());
    pool.waiting.pop_front();
    ++pool.busy;
    lock.unlock();
    run_one(pool, *session);
    session.reset();
    lock.lock();
    --pool.busy;
  }
  --pool.threads;
  pool.left.notify_all();
}

class ThreadExecutor final : public TrialExecutor {
 public:
  ThreadExecutor(std::shared_ptr<Inbox> inbox, Runnable trainable, ClassPolicy policy)
      : pool_(new Pool{std::move(inbox), std::move(trainable), policy}) {}

  /// Waits for idle threads alone.
  ~ThreadExecutor() override {
    for (const auto& [trial, session] : sessions_) session->let_go();
    Pool& pool = *pool_;
    MutexLock lock(pool.mutex);
    pool.closing = true;
    pool.work.notify_all();
    pool.left.wait_for(lock, std::chrono::seconds(5),
                       [&pool]() KOLO_REQUIRES(pool.mutex) { return pool.threads <= pool.busy; });
  }

  void start(StartOrder order) override {
    const RunId id = order.id;
    auto session = std::make_shared<ThreadSession>(*pool_->inbox, std::move(order));
    sessions_[id.trial] = session;
    const MutexLock lock(pool_->mutex);
    pool_->waiting.push_back(std::move(session));
    if (pool_->idle >= static_cast<int>(pool_->waiting.size())) {
      pool_->work.notify_one();
      return;
    }
    ++pool_->threads;
    std::thread([pool = pool_] { work(*pool); }).detach();
  }

  void answer(RunId id, Answer answer) override {
    if (auto session = find(id)) session->answer(answer);
  }
  void stop(RunId id) override {
    if (auto session = find(id)) session->want_stop();
  }
  void kill(RunId id) override { stop(id); }
  void forget(RunId id) override {
    const auto session = find(id);
    if (!session) return;
    session->let_go();
    sessions_.erase(id.trial);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return false; }

 private:
  std::shared_ptr<ThreadSession> find(RunId id) {
    const auto found = sessions_.find(id.trial);
    if (found == sessions_.end() || found->second->order().id != id) return nullptr;
    return found->second;
  }

  std::shared_ptr<Pool> pool_;
  std::unordered_map<std::int64_t, std::shared_ptr<ThreadSession>> sessions_;  // running ones
};

}  // namespace

std::unique_ptr<TrialExecutor> make_thread_executor(std::shared_ptr<Inbox> inbox,
                                                    Runnable trainable, ClassPolicy policy) {
  return std::make_unique<ThreadExecutor>(std::move(inbox), std::move(trainable), policy);
}

}  // namespace kolo::tune

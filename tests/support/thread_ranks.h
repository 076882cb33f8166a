// A job whose ranks are threads of this process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kolo/context.h"
#include "support/memory_bootstrap.h"
#include "support/scale.h"

namespace kolo::test {

struct ThreadRanksOptions {
  std::vector<int> host_of_rank = {0, 0};
  std::string transport = "auto";
  /// Of the ranks' operations.
  std::chrono::milliseconds timeout = std::chrono::seconds(kSanitized ? 60 : 30);
  /// A run that takes longer is hung: the process ends with a message that names the ranks.
  std::chrono::milliseconds limit = std::chrono::seconds(kSanitized ? 110 : 55);
};

/// Starts the ranks; each makes its Context. They live, idle between runs, until destruction.
class ThreadRanks {
 public:
  /// Throws what join() of a rank threw, with the rank in front.
  explicit ThreadRanks(ThreadRanksOptions options);
  ~ThreadRanks();
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(threads_.size()); }

  /// Calls `body` on every rank at once with its world, and waits for all.
  /// Throws std::runtime_error that lists what each failed rank threw. A rank that throws leaves
  /// the job, so that the others get peer_lost instead of waiting for it.
  void run(const std::function<void(Communicator&)>& body);

 private:
  using Task = std::function<void(Communicator&)>;

  void rank_main(int rank);
  void wait_for_all(const char* what);

  ThreadRanksOptions options_;
  std::shared_ptr<Meeting> meeting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const Task* task_ = nullptr;       // guarded by mutex_
  int round_ = 0;                    // guarded by mutex_; a new number is a new task
  std::vector<int> done_;            // guarded by mutex_; the round each rank has finished
  std::vector<std::string> errors_;  // guarded by mutex_; by rank, "" = none
  bool stopping_ = false;            // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace kolo::test

#include "support/thread_ranks.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace kolo::test {

ThreadRanks::ThreadRanks(ThreadRanksOptions options)
    : options_(std::move(options)), meeting_(Meeting::create(options_.host_of_rank)) {
  const int n = static_cast<int>(options_.host_of_rank.size());
  done_.assign(n, -1);
  errors_.resize(n);
  for (int r = 0; r < n; ++r) threads_.emplace_back([this, r] { rank_main(r); });
  try {
    wait_for_all("joining the job");
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
    throw;
  }
}

ThreadRanks::~ThreadRanks() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadRanks::run(const std::function<void(Communicator&)>& body) {
  {
    std::lock_guard lock(mutex_);
    task_ = &body;
    ++round_;
  }
  changed_.notify_all();
  wait_for_all("running");
}

void ThreadRanks::rank_main(int rank) {
  std::optional<Context> context;
  std::string error;
  auto guarded = [&](auto&& work) {
    try {
      work();
    } catch (const std::exception& e) {
      error = e.what();
      context.reset();  // the others must not wait for this rank
      meeting_->depart(rank, "threw: " + error);
    }
  };
  guarded([&] {
    ContextOptions options;
    options.bootstrap = meeting_->join(rank);
    options.transport = options_.transport;
    options.timeout = options_.timeout;
    context.emplace(options);
  });
  int round = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    errors_[rank] = error;
    done_[rank] = round;
    changed_.notify_all();
    changed_.wait(lock, [&] { return stopping_ || round_ != round; });
    if (stopping_) break;
    round = round_;
    const Task* task = task_;
    lock.unlock();
    if (context) guarded([&] { (*task)(context->world()); });
    lock.lock();
  }
  lock.unlock();
  context.reset();
}

void ThreadRanks::wait_for_all(const char* what) {
  std::unique_lock lock(mutex_);
  auto finished = [&] {
    for (int done : done_)
      if (done != round_) return false;
    return true;
  };
  if (!changed_.wait_for(lock, options_.limit, finished)) {
    // Threads cannot be stopped from outside; a core is more useful than a silent hang.
    std::fprintf(stderr, "ThreadRanks: hung while %s; not back:", what);
    for (int r = 0; r < size(); ++r)
      if (done_[r] != round_) std::fprintf(stderr, " rank %d", r);
    std::fprintf(stderr, "\n");
    std::abort();
  }
  std::string all;
  for (int r = 0; r < static_cast<int>(errors_.size()); ++r)
    if (!errors_[r].empty()) all += "\n  rank " + std::to_string(r) + ": " + errors_[r];
  if (!all.empty()) throw std::runtime_error(std::string("while ") + what + ":" + all);
}

}  // namespace kolo::test

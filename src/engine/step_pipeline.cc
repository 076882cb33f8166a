#include "engine/step_pipeline.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// What a rank says at the beginning of a step.
struct Greeting {
  std::uint64_t fingerprint = 0;
  std::uint64_t has_joined = 0;
};
static_assert(sizeof(Greeting) == 2 * sizeof(std::uint64_t));

}  // namespace

StepPipeline::StepPipeline(Engine& engine, ProcessSetId set, StepWork& work)
    : work_(work),
      set_(engine.find(set)),
      timeline_(engine.timeline()),
      communicator_(engine.make_communicator(set)) {
  set_->add_guest(this);
}

StepPipeline::~StepPipeline() {
  set_->remove_guest(this);
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (helper_.joinable()) helper_.join();
}

void StepPipeline::mark_ready(std::size_t item) {
  bool must_wake = false;
  {
    std::lock_guard lock(mutex_);
    if (ready_.size() < work_.items()) ready_.resize(work_.items());
    ready_[item] = true;
    // The last item is the owner's: it comes to finish() before another thread would be awake.
    must_wake = item == next_ && !is_running_ && item + 1 < work_.items();
    if (must_wake && !helper_.joinable()) helper_ = std::thread([this] { helper_main(); });
  }
  if (must_wake) changed_.notify_all();
}

void StepPipeline::helper_main() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] {
    return !is_finishing_ && !error_ && next_ < ready_.size() && ready_[next_];
  };
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || has_work(); });
    if (is_stopping_) return;
    is_running_ = true;
    while (has_work()) {
      const std::size_t item = next_;
      lock.unlock();
      std::exception_ptr error;
      try {
        run_item(item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
      ++next_;
    }
    is_running_ = false;
    changed_.notify_all();
  }
}

void StepPipeline::finish() {
  const auto begin_of_finish = Clock::now();
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  changed_.wait(lock, [&] { return !is_running_; });
  std::exception_ptr error = error_;
  std::size_t item = next_;
  lock.unlock();
  try {
    if (!error) {
      if (!has_begun_) begin(false);
      for (; item < work_.items(); ++item) run_item(item);
    }
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  times_.in_finish += Clock::now() - begin_of_finish;
  ++times_.steps;
  ready_.assign(ready_.size(), false);
  next_ = 0;
  has_begun_ = false;
  error_ = nullptr;
  is_finishing_ = false;
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void StepPipeline::run_item(std::size_t item) {
  if (!has_begun_) begin(false);
  const auto start = Clock::now();
  work_.run(*communicator_, item);
  const auto end = Clock::now();
  {
    std::lock_guard lock(mutex_);
    times_.total += end - start;
  }
  if (timeline_->is_on())
    timeline_->span("reduced", work_.name_of(item), start, end, work_.bytes_of(item));
}

void StepPipeline::begin(bool has_joined) {
  has_begun_ = true;
  everybody_joined_ = false;
  if (communicator_->size() > 1) {
    const Greeting mine{work_.fingerprint(), has_joined ? 1U : 0U};
    std::vector<Greeting> all;
    communicator_->allgather(&mine, 2, 1, DataType::int64,
                             [&](std::span<const std::size_t> counts) {
                               all.resize(counts.size());
                               return static_cast<void*>(all.data());
                             });
    everybody_joined_ =
        std::all_of(all.begin(), all.end(), [](const Greeting& g) { return g.has_joined != 0; });
    if (everybody_joined_) return;
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r].fingerprint != all[0].fingerprint)
        throw_error(ErrorCode::invalid_argument,
                    "ranks {} and {} do not have the same parameters in the same buckets",
                    set_->ranks()[0], set_->ranks()[r]);
  }
  if (work_.fingerprint() == 0) work_.plan(*communicator_);
}

void StepPipeline::stand_in() {
  while (true) {
    work_.bring_zeros();
    begin(true);
    if (everybody_joined_) break;
    for (std::size_t item = 0; item < work_.items(); ++item) work_.run(*communicator_, item);
  }
  has_begun_ = false;
}

StepPipeline::Times StepPipeline::take_times() {
  std::lock_guard lock(mutex_);
  return std::exchange(times_, {});
}

}  // namespace kolo::runtime

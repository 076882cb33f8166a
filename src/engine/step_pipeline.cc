// next_ is the item whose turn it is, on every rank the same sequence. progress() moves on as far
// as it can without waiting; helper_main() and finish() move on by waiting. Only one thread does so
// at a time: is_running_ is set while the helper works, and finish() waits for that to end.
#include "engine/step_pipeline.h"

#include <utility>

#include "comm/activity.h"
#include "engine/internals.h"
#include "engine/timeline.h"

namespace kolo::runtime {

StepPipeline::StepPipeline(Environment environment, StepWork& work)
    : set_(std::move(environment.set)),
      timeline_(std::move(environment.timeline)),
      communicator_(std::move(environment.communicator)),
      now_(environment.now),
      work_(work),
      runner_(*communicator_, std::move(environment.ranks), work, now_) {
  if (set_ != nullptr) set_->add_guest(this);
}

StepPipeline::StepPipeline(Engine& engine, ProcessSetId set, StepWork& work)
    : StepPipeline({engine.make_communicator(set), engine.ranks_of(set),
                    Internals::timeline_of(engine), Internals::set_of(engine, set)},
                   work) {}

StepPipeline::~StepPipeline() {
  // A fork has no helper to wait for, and what it would tell the set is the parent's to tell.
  if (owner_ != ::getpid()) {
    if (helper_.joinable()) helper_.detach();
    return;
  }
  if (set_ != nullptr) set_->remove_guest(this);
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (helper_.joinable()) helper_.join();
}

void StepPipeline::set_plan(StepPlan plan) {
  MutexLock lock(mutex_);
  ready_.assign(plan.items.size(), false);
  runner_.set_plan(std::move(plan));
}

void StepPipeline::use_helper(bool on) {
  MutexLock lock(mutex_);
  prefers_helper_ = on;
}

void StepPipeline::mark_ready(std::size_t item) {
  bool must_wake = false;
  {
    MutexLock lock(mutex_);
    const std::size_t items = runner_.plan().items.size();
    if (ready_.size() < items) ready_.resize(items);
    ready_[item] = true;
    if (timeline_->is_on()) note_ready(item, now_());
    if (is_helpers(item)) {
      // The last item is the owner's: it comes to finish() before another thread would be awake.
      must_wake = item == next_ && !is_running_ && item + 1 < items;
      if (must_wake && !helper_.joinable()) helper_ = std::thread([this] { helper_main(); });
    }
  }
  if (must_wake)
    changed_.notify_all();
  else
    progress();
}

// --- by the owner, without waiting ---------------------------------------------------------------

void StepPipeline::progress() {
  if (!runner_.can_defer()) return;
  MutexLock lock(mutex_);
  if (error_ || is_running_) return;
  try {
    while (is_ready(next_) && !is_helpers(next_)) {
      const auto start = runner_.try_run(next_);
      if (!start) return;
      note_done(next_++, *start);
    }
  } catch (...) {
    error_ = std::current_exception();  // told by finish()
  }
}

// --- by the helper -------------------------------------------------------------------------------

void StepPipeline::helper_main() {
  MutexLock lock(mutex_);
  const auto has_work = [&]() KOLO_REQUIRES(mutex_) {
    return !is_finishing_ && !error_ && is_ready(next_) && is_helpers(next_);
  };
  while (true) {
    changed_.wait(lock, [&]() KOLO_REQUIRES(mutex_) { return is_stopping_ || has_work(); });
    if (is_stopping_) return;
    is_running_ = true;
    while (has_work()) {
      const std::size_t item = next_;
      lock.unlock();
      std::exception_ptr error;
      Time start{};
      try {
        runner_.begin();
        start = runner_.run(item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (!error) note_done(item, start);
      error_ = error;
      ++next_;
    }
    is_running_ = false;
    changed_.notify_all();
  }
}

// --- the end of a step ---------------------------------------------------------------------------

void StepPipeline::finish() {
  const Time begin_of_finish = now_();
  MutexLock lock(mutex_);
  is_finishing_ = true;
  changed_.wait(lock, [&]() KOLO_REQUIRES(mutex_) { return !is_running_; });
  std::exception_ptr error = error_;
  std::size_t item = next_;
  // What nobody marked is ready now.
  if (timeline_->is_on())
    for (std::size_t i = item; i < runner_.plan().items.size(); ++i) note_ready(i, begin_of_finish);
  lock.unlock();
  try {
    if (!error) {
      runner_.begin();
      for (; item < runner_.plan().items.size(); ++item) {
        const Time start = runner_.run(item);
        const MutexLock noting(mutex_);
        note_done(item, start);
      }
    }
  } catch (...) {
    error = std::current_exception();
  }
  runner_.end();
  lock.lock();
  times_.in_finish += now_() - begin_of_finish;
  ++times_.steps;
  comm::activity.note_step();
  ready_.assign(ready_.size(), false);
  ready_since_.clear();
  next_ = 0;
  error_ = nullptr;
  is_finishing_ = false;
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void StepPipeline::stand_in() {
  using Brings = StepRunner::Brings;
  try {
    do {
      runner_.end();  // the step before, or what an error left of it
      runner_.begin(work_.bring_zeros() ? Brings::zeros : Brings::refusal);
      const std::size_t items = runner_.everybody_joined() ? 0 : runner_.plan().items.size();
      for (std::size_t item = 0; item < items; ++item) {
        const Time start = runner_.run(item);
        const MutexLock noting(mutex_);
        note_done(item, start);
      }
    } while (!runner_.everybody_joined());
  } catch (...) {
    runner_.end();
    throw;
  }
  runner_.end();
}

// --- times ---------------------------------------------------------------------------------------

void StepPipeline::note_done(std::size_t item, Time start) {
  const Time end = now_();
  times_.total += end - start;
  if (!timeline_->is_on()) return;
  const auto& [name, bytes, allreduce] = runner_.plan().items[item];
  if (item < ready_since_.size() && ready_since_[item] != Time()) {
    timeline_->mark("ready", name, ready_since_[item]);
    timeline_->span("QUEUE", name, ready_since_[item], start, bytes);
  }
  timeline_->span("ALLREDUCE", name, start, end, bytes);
}

void StepPipeline::note_ready(std::size_t item, Time when) {
  if (ready_since_.size() <= item) ready_since_.resize(item + 1);
  if (ready_since_[item] == Time()) ready_since_[item] = when;
}

void StepPipeline::note_copy(std::string_view name, Time begin, std::size_t bytes) {
  timeline_->span("MEMCPY_IN_FUSION_BUFFER", name, begin, now_(), bytes);
}

StepPipeline::Times StepPipeline::take_times() {
  MutexLock lock(mutex_);
  return std::exchange(times_, {});
}

}  // namespace kolo::runtime

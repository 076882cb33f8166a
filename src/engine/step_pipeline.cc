// next_ is the item whose turn it is, on every rank the same sequence. shown_ says what this rank
// has posted and not yet completed: nothing, the greeting at the beginning of the step, or the item
// next_. advance() moves on as far as it can without waiting; helper_main() and finish() move on by
// waiting. Only one thread does so at a time: is_running_ is set while the helper works, and
// finish() waits for that to end.
#include "engine/step_pipeline.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"

namespace kolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;

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
    if (timeline_->is_on()) note_ready(item, Clock::now());
    if (is_helpers(item)) {
      // The last item is the owner's: it comes to finish() before another thread would be awake.
      must_wake = item == next_ && !is_running_ && item + 1 < work_.items();
      if (must_wake && !helper_.joinable()) helper_ = std::thread([this] { helper_main(); });
    }
  }
  if (must_wake)
    changed_.notify_all();
  else
    progress();
}

bool StepPipeline::is_helpers(std::size_t item) const {
  return prefers_helper_ || !communicator_->can_defer() || !work_.as_allreduce(item);
}

void StepPipeline::use_helper(bool on) {
  std::lock_guard lock(mutex_);
  prefers_helper_ = on;
}

bool StepPipeline::can_choose_helper() const {
  return communicator_->can_defer() && work_.as_allreduce(0).has_value();
}

// --- by the owner, without waiting ---------------------------------------------------------------

void StepPipeline::progress() {
  if (!communicator_->can_defer()) return;
  std::unique_lock lock(mutex_);
  if (error_ || is_running_ || is_helpers(next_)) return;
  try {
    advance();
  } catch (...) {
    error_ = std::current_exception();  // told by finish()
  }
}

void StepPipeline::advance() {
  while (true) {
    if (shown_ != Shown::nothing) {
      const auto start = Clock::now();
      if (!communicator_->advance()) return;
      if (std::exchange(shown_, Shown::nothing) == Shown::greeting)
        hear_greetings();
      else
        note(next_++, start);
      continue;
    }
    if (next_ >= ready_.size() || !ready_[next_]) return;
    if (!has_begun_) {
      greet(false);
      continue;
    }
    const auto allreduce = work_.as_allreduce(next_);
    if (!allreduce) return;
    communicator_->begin_allreduce(allreduce->data, allreduce->count, allreduce->type,
                                   allreduce->op, allreduce->scaling);
    shown_ = Shown::item;
  }
}

// --- by the helper -------------------------------------------------------------------------------

void StepPipeline::helper_main() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] {
    return !is_finishing_ && !error_ && next_ < ready_.size() && ready_[next_] && is_helpers(next_);
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
        if (!has_begun_) begin(false);
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

// --- the end of a step ---------------------------------------------------------------------------

void StepPipeline::finish() {
  const auto begin_of_finish = Clock::now();
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  changed_.wait(lock, [&] { return !is_running_; });
  std::exception_ptr error = error_;
  std::size_t item = next_;
  // What nobody marked is ready now.
  for (std::size_t i = item; timeline_->is_on() && i < work_.items(); ++i)
    note_ready(i, begin_of_finish);
  lock.unlock();
  try {
    if (!error) {
      begin(false);
      for (; item < work_.items(); ++item) run_item(item);
    }
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  times_.in_finish += Clock::now() - begin_of_finish;
  ++times_.steps;
  ready_.assign(ready_.size(), false);
  ready_since_.clear();
  next_ = 0;
  has_begun_ = false;
  shown_ = Shown::nothing;
  error_ = nullptr;
  is_finishing_ = false;
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void StepPipeline::run_item(std::size_t item) {
  auto start = Clock::now();
  const auto allreduce =
      communicator_->can_defer() ? work_.as_allreduce(item) : std::optional<StepWork::Allreduce>();
  if (!allreduce) {
    work_.run(*communicator_, item);
  } else {
    if (shown_ != Shown::item)
      communicator_->begin_allreduce(allreduce->data, allreduce->count, allreduce->type,
                                     allreduce->op, allreduce->scaling);
    shown_ = Shown::nothing;
    communicator_->await();  // for ranks that are not so far; that is not the reduction's time
    start = Clock::now();
    communicator_->complete();
  }
  std::lock_guard lock(mutex_);
  note(item, start);
}

void StepPipeline::note(std::size_t item, Clock::time_point start) {
  const auto end = Clock::now();
  times_.total += end - start;
  if (!timeline_->is_on()) return;
  const std::string name = work_.name_of(item);
  const std::size_t bytes = work_.bytes_of(item);
  if (item < ready_since_.size() && ready_since_[item] != Clock::time_point()) {
    timeline_->mark("ready", name, ready_since_[item]);
    timeline_->span("queued", name, ready_since_[item], start, bytes);
  }
  timeline_->span("reduced", name, start, end, bytes);
}

void StepPipeline::note_ready(std::size_t item, Clock::time_point when) {
  if (ready_since_.size() <= item) ready_since_.resize(item + 1);
  if (ready_since_[item] == Clock::time_point()) ready_since_[item] = when;
}

void StepPipeline::note_copy(std::size_t item, Clock::time_point begin, std::size_t bytes) {
  timeline_->span("copied", work_.name_of(item), begin, Clock::now(), bytes);
}

// --- the beginning of a step ---------------------------------------------------------------------

void StepPipeline::begin(bool has_joined) {
  if (!has_begun_) {
    if (communicator_->size() == 1) {
      has_begun_ = true;
      if (work_.fingerprint() == 0) work_.plan(*communicator_);
      return;
    }
    greet(has_joined);
  }
  if (shown_ != Shown::greeting) return;
  shown_ = Shown::nothing;
  communicator_->complete();
  hear_greetings();
}

void StepPipeline::greet(bool has_joined) {
  has_begun_ = true;
  shown_ = Shown::greeting;
  const Greeting mine{work_.fingerprint(), has_joined ? 1U : 0U};
  if (communicator_->can_defer()) {
    communicator_->begin_meeting(&mine, sizeof mine);
    return;
  }
  greetings_.clear();
  communicator_->allgather(&mine, 2, 1, DataType::int64, [&](std::span<const std::size_t> counts) {
    greetings_.resize(counts.size());
    return static_cast<void*>(greetings_.data());
  });
}

void StepPipeline::hear_greetings() {
  if (communicator_->can_defer()) {
    greetings_.resize(static_cast<std::size_t>(communicator_->size()));
    for (int r = 0; r < communicator_->size(); ++r)
      std::memcpy(&greetings_[static_cast<std::size_t>(r)], communicator_->shown_by(r),
                  sizeof(Greeting));
  }
  everybody_joined_ = std::all_of(greetings_.begin(), greetings_.end(),
                                  [](const Greeting& g) { return g.has_joined != 0; });
  if (everybody_joined_) return;
  for (std::size_t r = 1; r < greetings_.size(); ++r)
    if (greetings_[r].fingerprint != greetings_[0].fingerprint)
      throw_error(ErrorCode::invalid_argument,
                  "ranks {} and {} do not have the same parameters in the same buckets",
                  set_->ranks()[0], set_->ranks()[r]);
  if (work_.fingerprint() == 0) work_.plan(*communicator_);
}

void StepPipeline::stand_in() {
  while (true) {
    work_.bring_zeros();
    begin(true);
    if (everybody_joined_) break;
    for (std::size_t item = 0; item < work_.items(); ++item) run_item(item);
    has_begun_ = false;
  }
  has_begun_ = false;
}

StepPipeline::Times StepPipeline::take_times() {
  std::lock_guard lock(mutex_);
  return std::exchange(times_, {});
}

}  // namespace kolo::runtime

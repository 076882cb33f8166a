// shown_ says what this rank has posted and not yet completed: nothing, the greeting at the
// beginning of the step, or an item. try_run() looks whether all other ranks have posted theirs and
// goes on if so; begin() and run() wait for them.
#include "engine/step_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.h"

namespace kolo::runtime {
namespace {

constexpr std::uint64_t kNobodysPlan = 2;

}  // namespace

StepRunner::StepRunner(Communicator& communicator, std::vector<int> ranks, StepWork& work, Now now)
    : communicator_(communicator),
      ranks_(std::move(ranks)),
      work_(work),
      now_(now),
      deferred_(communicator),
      can_defer_(deferred_.is_possible()) {}

// --- items ---------------------------------------------------------------------------------------

std::optional<StepRunner::Time> StepRunner::try_run(std::size_t item) {
  if (!has_begun_) greet(Brings::data);
  if (shown_ == Shown::greeting) {
    if (!deferred_.advance()) return std::nullopt;
    shown_ = Shown::nothing;
    hear_greetings();
  }
  if (shown_ == Shown::nothing) show(item);
  const Time start = now_();
  if (!deferred_.advance()) return std::nullopt;
  shown_ = Shown::nothing;
  return start;
}

StepRunner::Time StepRunner::run(std::size_t item) {
  Time start = now_();
  if (!can_defer(item)) {
    work_.run(communicator_, item);
    return start;
  }
  if (shown_ != Shown::item) show(item);
  shown_ = Shown::nothing;
  deferred_.await();
  start = now_();
  deferred_.complete();
  return start;
}

void StepRunner::show(std::size_t item) {
  const StepAllreduce& what = *plan_.items[item].allreduce;
  if (what.tree != nullptr)
    deferred_.begin_tree_allreduce(what.data, what.count, what.type, what.scaling.postscale,
                                   *what.tree);
  else
    deferred_.begin_allreduce(what.data, what.count, what.type, what.op, what.scaling);
  shown_ = Shown::item;
}

// --- the beginning of a step ---------------------------------------------------------------------

void StepRunner::begin(Brings what) {
  if (!has_begun_) {
    if (communicator_.size() == 1) {
      has_begun_ = true;
      everybody_joined_ = what != Brings::data;
      if (plan_.fingerprint == 0) plan_ = work_.plan(communicator_);
      return;
    }
    greet(what);
  }
  if (shown_ != Shown::greeting) return;
  shown_ = Shown::nothing;
  deferred_.complete();
  hear_greetings();
}

void StepRunner::greet(Brings what) {
  has_begun_ = true;
  shown_ = Shown::greeting;
  const Greeting mine{what == Brings::refusal ? kNobodysPlan : plan_.fingerprint,
                      what == Brings::data ? 0U : 1U};
  if (can_defer_) {
    deferred_.begin_meeting(&mine, sizeof mine);
    return;
  }
  greetings_.clear();
  communicator_.allgather(&mine, 2, 1, DataType::int64, [&](std::span<const std::size_t> counts) {
    greetings_.resize(counts.size());
    return static_cast<void*>(greetings_.data());
  });
}

void StepRunner::hear_greetings() {
  if (can_defer_) {
    greetings_.resize(static_cast<std::size_t>(communicator_.size()));
    for (int r = 0; r < communicator_.size(); ++r)
      std::memcpy(&greetings_[static_cast<std::size_t>(r)], deferred_.shown_by(r),
                  sizeof(Greeting));
  }
  everybody_joined_ = std::all_of(greetings_.begin(), greetings_.end(),
                                  [](const Greeting& g) { return g.has_joined != 0; });
  if (everybody_joined_) return;
  for (std::size_t r = 1; r < greetings_.size(); ++r)
    if (greetings_[r].fingerprint != greetings_[0].fingerprint)
      throw_error(ErrorCode::invalid_argument,
                  "ranks {} and {} do not have the same parameters in the same buckets", ranks_[0],
                  ranks_[r]);
  if (plan_.fingerprint == 0) plan_ = work_.plan(communicator_);
}

}  // namespace kolo::runtime

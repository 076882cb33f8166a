#include "comm/elastic/member.h"

#include <algorithm>
#include <utility>

namespace kolo::comm::elastic {

void Member::take(const FromLauncher& message) {
  if (const auto* plan = std::get_if<GroupPlan>(&message)) {
    // Only the youngest group counts: an older one has been given up by the launcher.
    if (plan->generation > generation_ && (!plan_ || plan->generation > plan_->generation))
      plan_ = *plan;
  } else if (const auto* change = std::get_if<Change>(&message)) {
    asked_to_change_ = std::max(asked_to_change_, change->generation);
  } else if (const auto* over = std::get_if<Over>(&message)) {
    over_ = std::max(over_, over->generation);
  } else if (std::holds_alternative<Retire>(message)) {
    must_leave_ = true;
  }
}

FromWorker Member::leave_group(int blamed) const {
  if (must_leave_) return Leaving{};
  return Ready{generation_, blamed};
}

Next Member::next() const noexcept {
  // The work of the last group is done, and so is this worker's: it is not one that went early.
  if (over_ != 0 && over_ == generation_) return Next::finish;
  if (must_leave_) return Next::leave;
  return plan_ ? Next::join : Next::wait;
}

GroupPlan Member::join() {
  GroupPlan plan = *std::exchange(plan_, std::nullopt);
  generation_ = plan.generation;
  return plan;
}

}  // namespace kolo::comm::elastic

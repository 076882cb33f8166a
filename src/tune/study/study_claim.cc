#include "tune/study/study_claim.h"

#include <poll.h>

#include "base/deadline.h"
#include "base/interrupt.h"

namespace kolo::tune {

StudyClaim::StudyClaim(store::StudyStore& store, store::StudyId study,
                       std::chrono::milliseconds watch)
    : store_(store), study_(study) {
  watch_for_a_sign(watch);
  store_.claim(study_, store_.lease_date());
}

void StudyClaim::watch_for_a_sign(std::chrono::milliseconds time) {
  constexpr int kLookAgainMs = 50;
  if (store_.holder(study_, store_.lease_date())) return;  // which refuses the claim
  const auto before = store_.holder_elsewhere(study_);
  if (!before) return;
  const Deadline deadline = Deadline::after(time);
  while (!deadline.passed()) {
    throw_if_interrupted();
    ::poll(nullptr, 0, kLookAgainMs);
    const auto now = store_.holder_elsewhere(study_);
    if (!now) return;
    if (now->heard != before->heard) return store_.claim(study_, now->heard);  // it is refused
  }
}

}  // namespace kolo::tune

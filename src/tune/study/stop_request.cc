#include "tune/study/stop_request.h"

#include "base/errors.h"

namespace kolo::tune {

void request_stop(store::StudyStore& store, const store::StudyRecord& study,
                  std::optional<std::int64_t> trial) {
  if (!store.holder(study.id, store.lease_date()))
    throw_error(ErrorCode::failed_precondition, "study {} is not running", study.name);
  if (trial && (*trial < 0 || *trial >= store.trial_count(study.id)))
    throw_error(ErrorCode::not_found, "study {} has no trial {}", study.name, *trial);
  store.request(study.id, "stop", trial);
}

}  // namespace kolo::tune

// No other process controls a study as long as this lives.
#pragma once

#include "store/study_store.h"

namespace kolo::tune {

class StudyClaim {
 public:
  /// Throws failed_precondition, naming the process that controls the study.
  StudyClaim(store::StudyStore& store, store::StudyId study) : store_(store), study_(study) {
    store_.claim(study_, store_.lease_date());
  }
  ~StudyClaim() { store_.release(study_); }
  StudyClaim(const StudyClaim&) = delete;
  StudyClaim& operator=(const StudyClaim&) = delete;

 private:
  store::StudyStore& store_;
  store::StudyId study_;
};

}  // namespace kolo::tune

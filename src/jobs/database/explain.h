// Why a job does not run, or did not succeed.
#pragma once

#include <string>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

/// Lines for people, the most important first. Throws not_found.
std::vector<std::string> explain(JobDatabase& jobs, JobId id);

/// What the launchers that are at work now can do for a job.
struct Prospect {
  int alive = 0;         ///< launchers
  int able = 0;          ///< of them, those that can run it
  std::string obstacle;  ///< what keeps one of the others from it; "" = there is no other
};
/// Of a job that need not exist. `beside` is a job that runs as long as this one waits, and keeps
/// its place; 0 = none.
Prospect prospect_of(JobDatabase& jobs, const Job& job, JobId beside = {});

}  // namespace kolo::jobs

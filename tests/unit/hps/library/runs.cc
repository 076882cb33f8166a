// A second file of the same library: what both offer is one list.
#include <vector>

#include "kolo/hps/sdk.h"

KOLO_HPS_RUN(several) { return std::vector<double>{1, job["x"].as_number()}; }

KOLO_HPS_RUN(fails) { return "F_always"; }

KOLO_HPS_RUN(annotated) {
  kolo::hps::RunResult result(4.0);
  result.metadata["id"] = job.id();
  return result;
}

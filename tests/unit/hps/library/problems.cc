// A user's library, as docs describe it: headers of kolo, nothing linked.
#include <stdexcept>

#include "kolo/hps/sdk.h"

KOLO_HPS_PROBLEM(Problem) {
  kolo::hps::HpProblem problem;
  problem.add_hyperparameter({-10.0, 10.0}, "x", 3.0);
  problem.add_hyperparameter({"plain", "double"}, "how");
  problem.add_forbidden_clause(
      kolo::search::all_of({kolo::search::greater("x", 9), kolo::search::equals("how", "double")}));
  return problem;
}

KOLO_HPS_PROBLEM(Broken) {
  kolo::hps::HpProblem problem;
  problem.add_hyperparameter({10.0, -10.0}, "x");
  return problem;
}

KOLO_HPS_RUN(run) {
  const double x = job["x"].as_number();
  return job["how"].as_string() == "double" ? -2 * x : -x;
}

// One evaluation in a process of its own, perhaps one rank of several.
#include "hps/search/evaluation.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"
#include "tune/executor/self_executor.h"

namespace kolo::app {

int run_nas_evaluate(EvaluateOptions& options) {
  set_compute_threads(options.threads);
  auto loaded = nas::load_na_problem(options.problem);
  const auto run =
      nas::bind_run(options.run.empty() ? "alpha" : options.run, std::move(loaded.problem));
  tune::run_as_trial(hps::runnable_of(run, options.log_dir, 1));
}

}  // namespace kolo::app

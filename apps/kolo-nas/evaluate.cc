// One evaluation in a process of its own, perhaps one rank of several.
#include "base/errors.h"
#include "hps/search/evaluation.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"
#include "tune/executor/self_executor.h"

namespace kolo::app {

int run_nas_evaluate(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"problem", "", "", "NAME", "", ""}, {"run", "", "", "NAME", "", ""},
      {"log-dir", "", "", "DIR", "", ""},  {"config", "", "", "FILE", "", ""},
      {"result", "", "", "FILE", "", ""},  {"id", "", "", "N", "", ""},
      {"threads", "", "", "N", "", ""},
  };
  const Options options(kTable, arguments);
  set_compute_threads(static_cast<int>(options.integer("threads", 1).value_or(1)));
  auto loaded = nas::load_na_problem(options.text("problem").value_or(""));
  const auto run = nas::bind_run(options.text("run").value_or("alpha"), std::move(loaded.problem));
  const std::string log_dir = options.text("log-dir").value_or("");
  if (options.has("config")) {
    hps::evaluate_file(run, options.integer("id", 0).value_or(0), *options.text("config"),
                       options.text("result").value_or("result.json"), log_dir, 1);
    return 0;
  }
  tune::run_as_trial(hps::runnable_of(run, log_dir, 1));
}

}  // namespace kolo::app

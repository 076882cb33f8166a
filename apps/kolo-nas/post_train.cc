// kolo nas post-train: the best architectures of a search, trained for longer.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/metric_order.h"
#include "hps/results/results_csv.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"

namespace kolo::app {

int run_nas_post_train(NasPostTrainOptions& options) {
  auto loaded = nas::load_na_problem(options.problem);
  nas::PostTraining how = loaded.problem.post_training();
  if (options.num_epochs) how.num_epochs = *options.num_epochs;
  if (options.repeat) how.repeat = *options.repeat;
  loaded.problem.post_training(how);
  set_compute_threads(options.threads);

  const std::string& log_dir = options.log_dir;
  auto rows = hps::read_results(log_dir).rows;
  std::erase_if(rows, [](const auto& row) { return row.failed(); });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return is_better_metric(a.objectives.front(), b.objectives.front(), /*lower_is_better=*/false);
  });
  // The same architecture may have been evaluated several times.
  std::vector<search::Value> best;
  const auto wanted = static_cast<std::size_t>(options.k);
  for (const auto& row : rows) {
    auto config = hps::nested_config(row.parameters);
    if (best.size() < wanted && std::find(best.begin(), best.end(), config) == best.end())
      best.push_back(std::move(config));
  }
  if (best.empty())
    throw_error(ErrorCode::failed_precondition, "{} has no evaluation that succeeded", log_dir);
  const auto trained = nas::post_train(loaded.problem, best, options.run, log_dir);
  for (const auto& one : trained)
    fmt::print("{:.6g} ± {:.2g} (best {:.6g}): {}\n", one.mean, one.deviation, one.best,
               one.configuration.to_string());
  fmt::print("{}/post_training has the models and results.json\n", log_dir);
  return 0;
}

}  // namespace kolo::app

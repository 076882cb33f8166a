// kolo nas post-train: the best architectures of a search, trained for longer.
#include <algorithm>

#include "base/errors.h"
#include "hps/results/results_csv.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/threads.h"
#include "nas_commands.h"

namespace kolo::app {

int run_nas_post_train(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"problem", "-p", "", "NAME|FILE|LIB.so:NAME", "", "that was searched"},
      {"log-dir", "", "", "DIR", ".", "of the search; results go to DIR/post_training"},
      {"k", "-k", "", "N", "5", "how many of the best"},
      {"num-epochs", "", "", "N", "the problem's", "epochs of each"},
      {"repeat", "", "", "N", "the problem's", "trainings of each, with other seeds"},
      {"run", "-r", "", "NAME", "alpha", "run function"},
      {"num-threads-per-rank", "", "", "N", "1", "threads"},
      {"help", "-h", "", "", "", "this text"}};
  const Options options(kTable, arguments);
  constexpr std::string_view kUsage = "kolo nas post-train --problem P --log-dir DIR [-k N]";
  if (options.has("help")) {
    fmt::print(
        "Trains the best architectures of a search anew, for longer.\n\nUsage: {}\n\n"
        "Options:\n{}",
        kUsage, help_text(kTable));
    return 0;
  }
  options.expect_words(0, 0, kUsage);
  const auto name = options.text("problem");
  if (!name) throw_error(ErrorCode::invalid_argument, "which problem? Give --problem");
  auto loaded = nas::load_na_problem(*name);
  nas::PostTraining how = loaded.problem.post_training();
  if (const auto epochs = options.integer("num-epochs", 1)) how.num_epochs = *epochs;
  if (const auto repeat = options.integer("repeat", 1)) how.repeat = *repeat;
  loaded.problem.post_training(how);
  set_compute_threads(static_cast<int>(options.integer("num-threads-per-rank", 1).value_or(1)));

  const std::string log_dir = options.text("log-dir").value_or(".");
  auto rows = hps::read_results(log_dir).rows;
  std::erase_if(rows, [](const auto& row) { return row.failed(); });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.objectives.front() > b.objectives.front();
  });
  // The same architecture may have been evaluated several times.
  std::vector<search::Value> best;
  const auto wanted = static_cast<std::size_t>(options.integer("k", 1).value_or(5));
  for (const auto& row : rows) {
    auto config = hps::nested_config(row.parameters);
    if (best.size() < wanted && std::find(best.begin(), best.end(), config) == best.end())
      best.push_back(std::move(config));
  }
  if (best.empty())
    throw_error(ErrorCode::failed_precondition, "{} has no evaluation that worked", log_dir);
  const auto trained =
      nas::post_train(loaded.problem, best, options.text("run").value_or("alpha"), log_dir);
  for (const auto& one : trained)
    fmt::print("{:.6g} ± {:.2g} (best {:.6g}): {}\n", one.mean, one.deviation, one.best,
               one.configuration.to_string());
  fmt::print("{}/post_training has the models and results.json\n", log_dir);
  return 0;
}

}  // namespace kolo::app

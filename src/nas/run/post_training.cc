// The best configurations are trained again by an ordinary run function, with the epochs, callbacks
// and metrics of post-training in place of those of the search. Each is trained `repeat` times with
// other seeds; mean and deviation are over the trainings that did not fail.
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "kolo/context.h"
#include "kolo/nas/run.h"
#include "search/space/json_value.h"

namespace kolo::nas {
namespace {

/// The problem as it is trained afterwards.
NaProblem for_post_training(const NaProblem& problem) {
  const PostTraining& post = problem.post_training();
  NaProblem changed = problem;
  search::Spec::Dict values{{"num_epochs", search::Spec(post.num_epochs)},
                            {"repeat", search::Spec(1)}};
  if (!post.callbacks.is_nothing()) values.emplace("callbacks", search::Spec(post.callbacks));
  changed.hyperparameters(search::Spec(std::move(values)));
  if (!post.metrics.empty()) changed.metrics(post.metrics);
  return changed;
}

/// What was searched may not bring back the number of epochs of the search.
Value without_epochs(Value configuration) {
  configuration.as_dict().erase("num_epochs");
  configuration.as_dict().erase("repeat");
  return configuration;
}

void summarise(PostTrained& trained) {
  double sum = 0, squares = 0;
  int count = 0;
  trained.best = -std::numeric_limits<double>::infinity();
  for (const double value : trained.objectives) {
    if (!std::isfinite(value)) continue;
    ++count;
    sum += value;
    trained.best = std::max(trained.best, value);
  }
  if (count == 0) {
    trained.best = trained.mean = trained.deviation = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  trained.mean = sum / count;
  for (const double value : trained.objectives)
    if (std::isfinite(value)) squares += (value - trained.mean) * (value - trained.mean);
  trained.deviation = std::sqrt(squares / count);
}

Json to_json(const PostTrained& trained) {
  return {{"configuration", search::json_from_value(trained.configuration)},
          {"objectives", trained.objectives},
          {"failures", trained.failures},
          {"best", trained.best},
          {"mean", trained.mean},
          {"deviation", trained.deviation},
          {"metadata", search::json_from_value(
                           Value(Value::Dict(trained.metadata.begin(), trained.metadata.end())))}};
}

void write_results(const std::filesystem::path& folder, const std::vector<PostTrained>& all) {
  Json json{{"kolo_post_training", 1}, {"results", Json::array()}};
  for (const PostTrained& each : all) json["results"].push_back(to_json(each));
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "results.json", json_text(json, 2) + "\n");
}

}  // namespace

std::vector<PostTrained> post_train(const NaProblem& problem, const std::vector<Value>& best,
                                    std::string_view run, const std::filesystem::path& log_dir) {
  const NaRunFunction function = na_run_function(run).function;
  NaProblem changed = for_post_training(problem);
  const std::int64_t repeat = problem.post_training().repeat;
  const auto folder = log_dir.empty() ? log_dir : log_dir / "post_training";
  std::vector<PostTrained> all;
  for (const Value& configuration : best) {
    PostTrained& trained = all.emplace_back();
    trained.configuration = configuration;
    for (std::int64_t r = 0; r < repeat; ++r) {
      changed.seed(problem.seed() + static_cast<std::uint64_t>(r));
      const auto id = static_cast<std::int64_t>(all.size() - 1) * repeat + r;
      hps::RunningJob job(id, without_epochs(configuration), folder, folder);
      hps::RunResult result = function(changed, job);
      const double value =
          result.failed() ? std::numeric_limits<double>::quiet_NaN() : result.objectives.front();
      const bool leads = trained.metadata.empty() ||
                         std::none_of(trained.objectives.begin(), trained.objectives.end(),
                                      [&](double other) { return other >= value; });
      trained.objectives.push_back(value);
      if (result.failed()) trained.failures.push_back(result.failure);
      if (leads && !result.failed()) trained.metadata = std::move(result.metadata);
    }
    summarise(trained);
    const bool writes = !folder.empty() && (!is_initialized() || rank() == 0);
    if (writes) write_results(folder, all);
  }
  return all;
}

}  // namespace kolo::nas

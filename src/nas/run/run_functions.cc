// An evaluation: read the configuration, build the network, train it `repeat` times with different
// seeds, judge the history by the objective, and save weights, history and configuration of the
// best epoch. What goes wrong on the way becomes a failure with a name (F_build, F_nan) instead of
// an exception, so that the search can learn from it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/errors.h"
#include "base/json.h"
#include "base/registry.h"
#include "hps/problem/plugin.h"
#include "kolo/nas/run.h"
#include "nas/problem/aliases.h"
#include "nas/problem/losses.h"
#include "nas/problem/objective.h"
#include "nas/run/process_random.h"
#include "nas/run/saved_files.h"
#include "nas/run/threads_choice.h"
#include "nas/run/training.h"
#include "search/space/json_value.h"

namespace kolo::nas {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// What the history of a training has at its end.
std::vector<std::string> measured_in(const NaProblem& problem) {
  std::vector<std::string> epoch{"loss"};
  const auto outputs = problem.metrics_by_output();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string prefix = outputs.size() > 1 ? fmt::format("output_{}_", i) : "";
    if (outputs.size() > 1) epoch.push_back(prefix + "loss");
    for (const auto& metric : outputs[i]) epoch.push_back(prefix + metric.name);
  }
  std::vector<std::string> all;
  for (const auto& name : epoch) all.push_back("val_" + name);
  all.insert(all.end(), epoch.begin(), epoch.end());
  all.insert(all.end(), {"learning_rate", "n_parameters", "training_time", "predict_time"});
  return all;
}

/// Text or function, asked in the same way. One that no training can answer is refused before it.
class Judge {
 public:
  explicit Judge(const NaProblem& problem) : function_(problem.objective_function()) {
    if (function_) return;
    text_ = Objective::parse(problem.objective_text());
    text_->check(measured_in(problem));
  }

  /// The metric that decides which epoch was best, and in which direction.
  [[nodiscard]] std::string watched() const { return text_ ? text_->metric : "val_loss"; }
  [[nodiscard]] bool lowest_is_best() const { return text_ ? text_->negated : true; }
  [[nodiscard]] bool last_epoch_only() const { return text_ && text_->last_epoch_only; }

  /// After an epoch: nothing for functions, which see whole histories, and for metrics that are
  /// only known at the end.
  [[nodiscard]] std::optional<double> so_far(const History& history) const {
    if (!text_ || !history.contains(text_->metric)) return std::nullopt;
    return text_->value_in(history);
  }
  [[nodiscard]] double at_end(const History& history) const {
    return function_ ? function_(history) : text_->value_in(history);
  }

 private:
  const ObjectiveFunction& function_;
  std::optional<Objective> text_;
};

/// What callbacks watch must be measured in every epoch.
void check_monitors(const NaProblem& problem, const TrainingSettings& settings) {
  const auto measured = measured_in(problem);
  const auto check = [&](const auto& patience, const char* who) {
    if (!patience) return;
    if (std::find(measured.begin(), measured.end(), patience->monitor) == measured.end())
      throw_error(ErrorCode::not_found, "{} watches what the training does not measure: {}", who,
                  unknown_name("metric", patience->monitor, {measured.begin(), measured.end()}));
  };
  check(settings.early_stopping, "EarlyStopping");
  check(settings.reduce_on_plateau, "ReduceLROnPlateau");
}

struct Evaluation {
  const NaProblem& problem;
  hps::RunningJob& job;
  Ranks ranks;
  ScalingDefaults scaling;
  std::vector<std::int64_t> arch_seq;
  TrainingSettings settings;
  Judge judge;

  [[nodiscard]] bool saves() const { return ranks.rank() == 0 && !job.log_dir().empty(); }
};

std::uint64_t seed_of(const Evaluation& evaluation, std::int64_t repetition) {
  return evaluation.settings.seed.value_or(evaluation.problem.seed()) +
         static_cast<std::uint64_t>(repetition);
}

/// Each class needs its weight; libtorch would say so in the middle of a training.
void check_class_weights(const NaProblem& problem) {
  if (problem.class_weights().empty()) return;
  for (const Shape& shape : problem.output_shapes()) {
    const std::int64_t classes = std::max<std::int64_t>(shape.empty() ? 1 : shape.front(), 2);
    if (static_cast<std::int64_t>(problem.class_weights().size()) != classes)
      throw_error(ErrorCode::invalid_argument,
                  "there are {} class weights for {} classes; give one for each class",
                  problem.class_weights().size(), classes);
  }
}

TrainingTask task_of(Evaluation& evaluation, std::shared_ptr<Model> model,
                     std::int64_t repetition) {
  const NaProblem& problem = evaluation.problem;
  TrainingTask task;
  task.model = std::move(model);
  task.data = &problem.data();
  check_class_weights(problem);
  for (const auto& loss : problem.losses(evaluation.settings.loss))
    task.losses.push_back(
        {loss.function ? loss.function : make_loss(loss.name, problem.class_weights()),
         loss.weight});
  for (const auto& output : problem.metrics_by_output()) {
    auto& metrics = task.metrics.emplace_back();
    for (const auto& metric : output)
      metrics.push_back(metric.function ? make_metric(metric.name, metric.function)
                                        : make_metric(metric.name));
  }
  task.augment = problem.augment();
  task.settings = evaluation.settings;
  task.scaling = evaluation.scaling;
  task.seed = seed_of(evaluation, repetition);
  task.ranks = evaluation.ranks;
  task.validate_last_epoch_only = evaluation.judge.last_epoch_only();
  if (evaluation.saves()) task.best_by = evaluation.judge.watched();
  task.best_is_lowest = evaluation.judge.lowest_is_best();
  task.should_stop = [&job = evaluation.job] { return job.stopped(); };
  // Budgets of later repetitions would go back to the first epoch.
  if (repetition == 0)
    task.after_epoch = [&evaluation](std::int64_t epochs, const History& history) {
      const auto value = evaluation.judge.so_far(history);
      if (value && std::isfinite(*value))
        evaluation.job.record(static_cast<double>(epochs), *value);
    };
  return task;
}

/// Threads that evaluate at the same time take turns.
std::shared_ptr<Model> build(const Evaluation& evaluation, std::int64_t repetition) {
  const auto architectures = evaluation.problem.architectures();
  const SeededRandom weights(seed_of(evaluation, repetition));
  return architectures->model(evaluation.arch_seq);
}

/// One training, judged. Not-a-number where it failed.
struct Attempt {
  TrainingOutcome outcome;
  double objective = kNaN;
};

Attempt attempt(Evaluation& evaluation, std::shared_ptr<Model> model, std::int64_t repetition) {
  const std::int64_t parameters = model->num_parameters();
  Attempt result{train(task_of(evaluation, std::move(model), repetition))};
  History& history = result.outcome.history;
  history["n_parameters"] = {static_cast<double>(parameters)};
  history["training_time"] = {result.outcome.seconds};
  history["predict_time"] = {result.outcome.predict_seconds};
  if (result.outcome.end == TrainingEnd::not_a_number) return result;
  result.objective = evaluation.judge.at_end(history);
  // Functions may look at times, which differ between ranks.
  result.objective = evaluation.ranks.first_says(result.objective);
  return result;
}

void save(const Evaluation& evaluation, const Attempt& best) {
  const auto& log_dir = evaluation.job.log_dir();
  const std::int64_t id = evaluation.job.id();
  save_history(log_dir, id, best.outcome.history);
  if (!best.outcome.best_weights.empty())
    save_model(log_dir, id, evaluation.problem.model(evaluation.arch_seq),
               best.outcome.best_weights);
}

void add_metadata(hps::RunResult& result, const Attempt& best) {
  result.metadata["n_parameters"] =
      static_cast<std::int64_t>(best.outcome.history.at("n_parameters").front());
  result.metadata["training_time"] = best.outcome.seconds;
  result.metadata["predict_time"] = best.outcome.predict_seconds;
  result.metadata["epochs"] = best.outcome.epochs;
  result.metadata["ended_by"] = std::string(to_string(best.outcome.end));
  result.metadata["num_ranks"] = best.outcome.ranks;
  result.metadata["effective_batch_size"] = static_cast<std::int64_t>(best.outcome.global_batch);
  result.metadata["effective_learning_rate"] = best.outcome.peak_rate;
}

/// Trains as often as wanted and answers the best.
hps::RunResult judge(Evaluation& evaluation) {
  const NaProblem& problem = evaluation.problem;
  hps::RunningJob& job = evaluation.job;
  if (evaluation.saves())
    save_config(job.log_dir(), job.id(), problem.config(evaluation.arch_seq, job.parameters()));
  std::optional<Attempt> best;
  for (std::int64_t i = 0; i < evaluation.settings.repeat; ++i) {
    std::shared_ptr<Model> model;
    try {
      model = build(evaluation, i);
    } catch (const Error& error) {
      return hps::RunResult("F_build: " + error.message());
    }
    Attempt next = attempt(evaluation, std::move(model), i);
    const bool better = !best || !std::isfinite(best->objective) ||
                        (std::isfinite(next.objective) && next.objective > best->objective);
    if (better) best = std::move(next);
    if (evaluation.ranks.first_says(job.stopped())) break;
  }
  if (evaluation.saves()) save(evaluation, *best);
  hps::RunResult result =
      std::isfinite(best->objective) ? hps::RunResult(best->objective) : hps::RunResult("F_nan");
  add_metadata(result, *best);
  return result;
}

Json to_json(const hps::RunResult& result) {
  return {{"objectives", result.objectives},
          {"failure", result.failure},
          {"metadata",
           search::json_from_value(Value::Dict(result.metadata.begin(), result.metadata.end()))}};
}

hps::RunResult from_json(const Json& json) {
  hps::RunResult result(json.at("objectives").get<std::vector<double>>());
  result.failure = json.at("failure").get<std::string>();
  for (const auto& [name, value] : json.at("metadata").items())
    result.metadata[name] = search::value_from_json(value);
  return result;
}

enum class Who { this_process, ranks };

hps::RunResult evaluate(const NaProblem& problem, hps::RunningJob& job, Who who,
                        ScalingDefaults scaling) {
  choose_threads();
  const auto settings = TrainingSettings::from(problem.hyperparameters_of(job.parameters()));
  const Ranks ranks = who == Who::ranks ? Ranks::of_job(settings.ranks_per_node) : Ranks::alone();
  std::optional<hps::RunResult> result;
  if (!ranks.watches()) {
    check_monitors(problem, settings);
    Evaluation evaluation{
        problem,  job,           ranks, scaling, NaProblem::arch_seq_of(job.parameters()),
        settings, Judge(problem)};
    result = judge(evaluation);
  }
  if (!ranks.has_watchers()) return *result;
  const std::string told = ranks.tell_watchers(result ? json_text(to_json(*result)) : "");
  return from_json(parse_json(told, "the outcome of an evaluation"));
}

constexpr NaRunInfo kRunFunctionTable[] = {
    {"alpha", "trains in one process", alpha},
    {"distributed", "trains with all ranks; batch and rate follow the linear scaling rule",
     distributed},
    {"tf_distributed", "trains with all ranks; scales only what hyperparameters say",
     tf_distributed},
    {"quick", "trains nothing: the sum of arch_seq", quick},
};

constexpr Alias kRunFunctionAliases[] = {{"horovod", "distributed"}};

}  // namespace

hps::RunResult alpha(const NaProblem& problem, hps::RunningJob& job) {
  return evaluate(problem, job, Who::this_process, {});
}

hps::RunResult distributed(const NaProblem& problem, hps::RunningJob& job) {
  return evaluate(problem, job, Who::ranks, {.batch = true, .rate = true, .warmup = true});
}

hps::RunResult tf_distributed(const NaProblem& problem, hps::RunningJob& job) {
  return evaluate(problem, job, Who::ranks, {});
}

hps::RunResult quick(const NaProblem& problem, hps::RunningJob& job) {
  const std::vector<std::int64_t> arch_seq = NaProblem::arch_seq_of(job.parameters());
  problem.architectures()->check_architecture(arch_seq);
  double sum = 0;
  for (const std::int64_t number : arch_seq) sum += static_cast<double>(number);
  return sum;
}

std::span<const NaRunInfo> na_run_functions() { return kRunFunctionTable; }

const NaRunInfo& na_run_function(std::string_view name) {
  // deephyper.nas.run.horovod.run, deephyper.search.nas.model.run.alpha.run: the word before the
  // last, when that is "run".
  std::string_view word = name;
  if (word.ends_with(".run")) word.remove_suffix(4);
  if (const auto dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  word = without_alias(word, kRunFunctionAliases);
  std::vector<std::string_view> known;
  for (const NaRunInfo& each : kRunFunctionTable) {
    if (each.name == word) return each;
    known.push_back(each.name);
  }
  throw_unknown_name("run function", name, known);
}

hps::RunFunction bind_run(std::string_view name, NaProblem problem) {
  if (const auto library = hps::parse_plugin_name(name))
    return hps::Plugin(library->file).run(library->symbol.empty() ? "run" : library->symbol);
  const NaRunFunction function = na_run_function(name).function;
  if (function != quick) (void)Judge(problem);
  return [function, problem = std::move(problem)](hps::RunningJob& job) {
    return function(problem, job);
  };
}

}  // namespace kolo::nas

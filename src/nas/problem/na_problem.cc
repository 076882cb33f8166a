// A problem is described by cheap calls; data and spaces are made when they are first needed, under
// a lock, and shared by copies of the problem. Changing the data or the space forgets them. The
// search space consists of the architecture (`arch_seq`, one choice per VariableNode) and of those
// hyperparameters that are domains; the others are constants.

#include "base/errors.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/registry.h"
#include "kolo/nas/problem.h"
#include "nas/problem/data_check.h"
#include "nas/problem/hyperparameters.h"
#include "nas/problem/losses.h"
#include "nas/problem/metrics.h"
#include "nas/problem/objective.h"
#include "nas/problem/preprocessing.h"
#include "search/space/json_value.h"

namespace kolo::nas {
namespace {

/// The value of a tree without domains; nothing where there is one.
std::optional<Value> constant_value(const search::Spec& spec) {
  if (const auto* value = std::get_if<Value>(&spec.data())) return *value;
  if (const auto* list = std::get_if<search::Spec::List>(&spec.data())) {
    Value::List values;
    for (const auto& item : *list) {
      auto value = constant_value(item);
      if (!value) return std::nullopt;
      values.push_back(std::move(*value));
    }
    return Value(std::move(values));
  }
  if (const auto* dict = std::get_if<search::Spec::Dict>(&spec.data())) {
    Value::Dict values;
    for (const auto& [name, item] : *dict) {
      auto value = constant_value(item);
      if (!value) return std::nullopt;
      values.emplace(name, std::move(*value));
    }
    return Value(std::move(values));
  }
  return std::nullopt;
}

search::Spec arch_seq_spec(const KSearchSpace& architectures) {
  search::Spec::List list;
  for (const std::int64_t count : architectures.choices()) {
    std::vector<Value> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.emplace_back(i);
    list.emplace_back(search::choice(std::move(numbers)));
  }
  return search::Spec(std::move(list));
}

std::size_t output_number(std::string_view name, std::size_t outputs) {
  for (std::size_t i = 0; i < outputs; ++i)
    if (name == fmt::format("output_{}", i)) return i;
  throw_error(ErrorCode::invalid_argument,
              "the output '{}' does not exist; the outputs are output_0 … output_{}", name,
              outputs - 1);
}

}  // namespace

/// What is made once, when it is needed, and shared by copies of the problem.
struct NaProblem::Loaded {
  Mutex mutex;
  std::optional<DataSplit> data KOLO_GUARDED_BY(mutex);
  std::shared_ptr<const KSearchSpace> architectures KOLO_GUARDED_BY(mutex);
  std::shared_ptr<const search::Space> space KOLO_GUARDED_BY(mutex);
};

NaProblem::NaProblem() : loaded_(std::make_shared<Loaded>()) {}

void NaProblem::forget_loaded() {
  auto fresh = std::make_shared<Loaded>();
  loaded_ = std::move(fresh);
}

// --- describing ---

NaProblem& NaProblem::load_data(LoadData load) {
  load_ = std::move(load);
  forget_loaded();
  return *this;
}

NaProblem& NaProblem::augment(Augment augment) {
  augment_ = std::move(augment);
  return *this;
}

NaProblem& NaProblem::preprocessing(std::string_view name) {
  preprocessing_ = kPreprocessings.at(name).name;
  preprocessing_function_ = nullptr;
  forget_loaded();
  return *this;
}

NaProblem& NaProblem::preprocessing(Preprocessing function) {
  preprocessing_function_ = std::move(function);
  preprocessing_ = "function";
  forget_loaded();
  return *this;
}

NaProblem& NaProblem::search_space(SpaceFunction space, Value settings) {
  space_ = std::move(space);
  space_name_ = "function";
  space_settings_ = std::move(settings);
  forget_loaded();
  return *this;
}

NaProblem& NaProblem::search_space(std::string_view name, Value settings) {
  search_space(space_function(name), std::move(settings));
  space_name_ = name;
  return *this;
}

NaProblem& NaProblem::hyperparameters(search::Spec values) {
  search::Spec::Dict given;
  if (auto* dict = std::get_if<search::Spec::Dict>(&values.data())) {
    given = std::move(*dict);
  } else if (auto* value = std::get_if<Value>(&values.data());
             value != nullptr && value->is_dict()) {
    for (auto& [name, item] : value->as_dict()) given.emplace(name, search::Spec(item));
  } else {
    throw_error(ErrorCode::invalid_argument, "hyperparameters must be a dictionary");
  }
  for (auto& [name, spec] : given) {
    check_hyperparameter_name(name);
    if (auto constant = constant_value(spec))
      (void)TrainingSettings::from(Value(Value::Dict{{name, std::move(*constant)}}));
    hyperparameters_.insert_or_assign(name, std::move(spec));
  }
  forget_loaded();
  return *this;
}

NaProblem& NaProblem::loss(std::string_view name) {
  loss_ = loss_name(name);
  loss_function_ = nullptr;
  losses_.clear();
  loss_weights_.clear();
  return *this;
}

NaProblem& NaProblem::loss(LossFunction function) {
  loss("mse");
  loss_.clear();
  loss_function_ = std::move(function);
  return *this;
}

NaProblem& NaProblem::loss(std::map<std::string, std::string> by_output,
                           std::map<std::string, double> weights) {
  for (auto& [output, name] : by_output) name = loss_name(name);
  for (const auto& [output, weight] : weights)
    if (!by_output.contains(output))
      throw_error(ErrorCode::invalid_argument, "loss: '{}' has a weight but no loss", output);
  loss("mse");
  losses_ = std::move(by_output);
  loss_weights_ = std::move(weights);
  return *this;
}

NaProblem& NaProblem::loss(search::Domain names) {
  if (names.choices == nullptr)
    throw_error(ErrorCode::invalid_argument, "loss: only a choice of names can be searched");
  for (const Value& name : *names.choices) (void)loss_name(name.as_string());
  return hyperparameters(
      search::Spec(search::Spec::Dict{{"loss", search::Spec(std::move(names))}}));
}

NaProblem& NaProblem::class_weights(std::vector<double> weights) {
  class_weights_ = std::move(weights);
  return *this;
}

NaProblem& NaProblem::metrics(std::vector<std::string> names) {
  for (const auto& name : names) (void)make_metric(name);
  metrics_ = std::move(names);
  metrics_by_output_.clear();
  return *this;
}

NaProblem& NaProblem::output_metrics(std::map<std::string, std::vector<std::string>> by_output) {
  for (const auto& [output, names] : by_output)
    for (const auto& name : names) (void)make_metric(name);
  metrics_.clear();
  metrics_by_output_ = std::move(by_output);
  return *this;
}

NaProblem& NaProblem::metric(std::string name, MetricFunction function) {
  own_metrics_.push_back({std::move(name), std::move(function)});
  return *this;
}

NaProblem& NaProblem::objective(std::string_view text) {
  (void)Objective::parse(text);
  objective_ = text;
  objective_function_ = nullptr;
  return *this;
}

NaProblem& NaProblem::objective(ObjectiveFunction function) {
  objective_function_ = std::move(function);
  objective_.clear();
  return *this;
}

NaProblem& NaProblem::post_training(PostTraining settings) {
  if (settings.num_epochs < 1 || settings.repeat < 1)
    throw_error(ErrorCode::invalid_argument,
                "post_training: {} epochs and {} repeats: both must be at least 1",
                settings.num_epochs, settings.repeat);
  for (const auto& name : settings.metrics) (void)make_metric(name);
  if (!settings.callbacks.is_nothing())
    (void)TrainingSettings::from(Value(Value::Dict{{"callbacks", settings.callbacks}}));
  post_training_ = std::move(settings);
  return *this;
}

NaProblem& NaProblem::seed(std::uint64_t seed) {
  seed_ = seed;
  return *this;
}

// --- using ---

const DataSplit& NaProblem::data() const {
  const MutexLock lock(loaded_->mutex);
  if (!loaded_->data) {
    if (!load_)
      throw_error(ErrorCode::failed_precondition, "the problem has no data: call load_data first");
    DataSplit data = checked_data(load_());
    if (preprocessing_function_) {
      data = checked_data(preprocessing_function_(std::move(data)));
    } else {
      const std::string_view name = !preprocessing_.empty() ? std::string_view(preprocessing_)
                                    : targets_are_real(data.train) ? "minmaxstdscaler"
                                                                   : "none";
      data = kPreprocessings.at(name).make(std::move(data));
    }
    loaded_->data = std::move(data);
  }
  return *loaded_->data;
}

std::vector<Shape> NaProblem::input_shapes() const { return input_shapes_of(data()); }
std::vector<Shape> NaProblem::output_shapes() const { return output_shapes_of(data()); }

std::shared_ptr<const KSearchSpace> NaProblem::architectures() const {
  const DataSplit& known = data();
  const MutexLock lock(loaded_->mutex);
  if (!loaded_->architectures) {
    if (!space_)
      throw_error(ErrorCode::failed_precondition,
                  "the problem has no architectures: call search_space first");
    auto made = space_(input_shapes_of(known), output_shapes_of(known), space_settings_);
    if (!made)
      throw_error(ErrorCode::invalid_argument, "the function of search_space returned nothing");
    loaded_->architectures = std::move(made);
  }
  return loaded_->architectures;
}

std::shared_ptr<const search::Space> NaProblem::space() const {
  const auto known = architectures();
  const MutexLock lock(loaded_->mutex);
  if (!loaded_->space) {
    search::Spec::Dict spec{{"arch_seq", arch_seq_spec(*known)}};
    for (const auto& [name, value] : hyperparameters_)
      if (!constant_value(value)) spec.emplace(name, value);
    loaded_->space = std::make_shared<search::Space>(search::Spec(std::move(spec)));
  }
  return loaded_->space;
}

std::shared_ptr<Model> NaProblem::model(std::span<const std::int64_t> arch_seq) const {
  return architectures()->model(arch_seq);
}

Value NaProblem::hyperparameters_of(const Value& configuration) const {
  Value::Dict values;
  for (const auto& [name, spec] : hyperparameters_)
    if (auto constant = constant_value(spec)) values.emplace(name, std::move(*constant));
  if (configuration.is_nothing()) return values;
  for (const auto& [name, value] : configuration.as_dict()) {
    if (name == "arch_seq") continue;
    check_hyperparameter_name(name);
    values.insert_or_assign(name, value);
  }
  return values;
}

std::vector<std::int64_t> NaProblem::arch_seq_of(const Value& configuration) {
  const Value* found = configuration.is_dict() ? configuration.find_path("arch_seq") : nullptr;
  if (found == nullptr || !found->is_list())
    throw_error(ErrorCode::invalid_argument,
                "the configuration {} has no list 'arch_seq'; every architecture needs one",
                configuration.to_string());
  std::vector<std::int64_t> numbers;
  for (const Value& each : found->as_list()) numbers.push_back(each.as_integer());
  return numbers;
}

Value NaProblem::describe() const {
  Value::Dict searched;
  for (const auto& [name, spec] : hyperparameters_)
    if (!constant_value(spec)) searched.emplace(name, "searched");
  Value::Dict losses;
  for (const auto& [output, name] : losses_) losses.emplace(output, name);
  Value::Dict weights;
  for (const auto& [output, weight] : loss_weights_) weights.emplace(output, weight);
  Value::List metrics;
  for (const auto& name : metrics_) metrics.emplace_back(name);
  for (const auto& own : own_metrics_) metrics.emplace_back(own.name);
  Value::Dict by_output;
  for (const auto& [output, names] : metrics_by_output_)
    by_output.emplace(output, Value::List(names.begin(), names.end()));

  Value::Dict all{{"kolo_na_problem", 1},
                  {"space", space_name_},
                  {"space_settings", space_settings_},
                  {"preprocessing", preprocessing_.empty() ? "by targets" : preprocessing_},
                  {"augment", augment_ ? Value("function") : Value()},
                  {"hyperparameters", hyperparameters_of({})},
                  {"searched", std::move(searched)},
                  {"objective", objective_.empty() ? "function" : objective_},
                  {"seed", static_cast<std::int64_t>(seed_)}};
  all["loss"] = losses.empty() ? Value(loss_.empty() ? "function" : loss_) : Value(losses);
  if (!weights.empty()) all["loss_weights"] = std::move(weights);
  if (!class_weights_.empty())
    all["class_weights"] = Value::List(class_weights_.begin(), class_weights_.end());
  all["metrics"] = by_output.empty() ? Value(std::move(metrics)) : Value(std::move(by_output));
  all["post_training"] = Value{{"num_epochs", post_training_.num_epochs},
                               {"repeat", post_training_.repeat},
                               {"callbacks", post_training_.callbacks}};
  return all;
}

Value NaProblem::config(std::span<const std::int64_t> arch_seq, const Value& searched) const {
  Value all = describe();
  all.as_dict()["arch_seq"] = Value::List(arch_seq.begin(), arch_seq.end());
  all.as_dict()["hyperparameters"] = hyperparameters_of(searched);
  all.as_dict().erase("searched");
  all.as_dict().erase("post_training");
  return all;
}

std::string NaProblem::to_json() const { return describe().to_string(); }

// --- for run functions ---

std::vector<NaProblem::OutputLoss> NaProblem::losses(std::string_view name) const {
  const std::size_t outputs = data().train.targets.size();
  const std::string all = name.empty() ? loss_ : std::string(loss_name(name));
  std::vector<OutputLoss> result(outputs, OutputLoss{all, name.empty() ? loss_function_ : nullptr});
  if (!name.empty() || losses_.empty()) return result;
  std::vector<bool> known(outputs, false);
  for (const auto& [output, loss] : losses_) {
    const std::size_t i = output_number(output, outputs);
    const auto weight = loss_weights_.find(output);
    result[i] = {loss, nullptr, weight == loss_weights_.end() ? 1.0 : weight->second};
    known[i] = true;
  }
  for (std::size_t i = 0; i < outputs; ++i)
    if (!known[i])
      throw_error(ErrorCode::invalid_argument,
                  "output_{} has no loss, but other outputs have one; give each output a loss", i);
  return result;
}

std::vector<std::vector<NaProblem::OutputMetric>> NaProblem::metrics_by_output() const {
  const std::size_t outputs = data().train.targets.size();
  std::vector<std::vector<OutputMetric>> result(outputs);
  for (auto& each : result)
    for (const auto& name : metrics_) each.push_back({name, nullptr});
  for (const auto& [output, names] : metrics_by_output_)
    for (const auto& name : names)
      result[output_number(output, outputs)].push_back({name, nullptr});
  for (auto& each : result) each.insert(each.end(), own_metrics_.begin(), own_metrics_.end());
  return result;
}

}  // namespace kolo::nas

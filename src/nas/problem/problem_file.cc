#include "nas/problem/problem_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/random.h"
#include "kolo/torch/data.h"
#include "nas/problem/benchmark_problems.h"
#include "search/space/json_value.h"
#include "search/space/space_document.h"

namespace kolo::nas {
namespace {

using torch::Tensor;

[[noreturn]] void refuse(std::string_view key, std::string_view rule) {
  throw_error(ErrorCode::invalid_argument, "'{}' must be {}", key, rule);
}

std::string text_at(const Json& json, const char* key) {
  if (!json.is_string()) refuse(key, "a text");
  return json.get<std::string>();
}

std::vector<std::string> texts_at(const Json& json, const char* key) {
  if (json.is_string()) return {json.get<std::string>()};
  if (!json.is_array()) refuse(key, "a name or a list of names");
  std::vector<std::string> texts;
  for (const Json& each : json) texts.push_back(text_at(each, key));
  return texts;
}

// --- data from a table ---

struct TableData {
  std::filesystem::path csv;
  std::vector<std::string> targets;
  double validation = 0.2;
  bool header = true, classes = false;
  char separator = ',';
  std::uint64_t seed = 2018;
};

std::int64_t column_of(const CsvTable& table, const std::string& name, const std::string& file) {
  const auto found = std::find(table.names.begin(), table.names.end(), name);
  if (found != table.names.end()) return found - table.names.begin();
  // Columns may be named by their number, from 0.
  std::int64_t index = -1;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, index);
  if (error != std::errc() || stop != end || index < 0 || index >= table.values.size(1))
    throw_unknown_name(file + ": column", name,
                       std::vector<std::string_view>(table.names.begin(), table.names.end()));
  return index;
}

DataSplit load_table(const TableData& from) {
  CsvOptions options;
  options.separator = from.separator;
  options.header = from.header;
  const CsvTable table = read_csv(from.csv, options);
  std::vector<std::int64_t> wanted, rest;
  for (const std::string& name : from.targets)
    wanted.push_back(column_of(table, name, from.csv.string()));
  for (std::int64_t i = 0; i < table.values.size(1); ++i)
    if (std::find(wanted.begin(), wanted.end(), i) == wanted.end()) rest.push_back(i);
  if (rest.empty())
    throw_error(ErrorCode::invalid_argument,
                "{}: all columns are targets, so none is left for inputs", from.csv.string());

  const std::int64_t rows = table.values.size(0);
  const auto held_out =
      static_cast<std::int64_t>(std::llround(from.validation * static_cast<double>(rows)));
  if (held_out < 1 || held_out >= rows)
    throw_error(ErrorCode::invalid_argument,
                "{}: with {} of {} rows for validation, one of the two parts is empty",
                from.csv.string(), held_out, rows);
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) order[static_cast<std::size_t>(i)] = i;
  Random(from.seed).stream("validation").shuffle(order);
  const Tensor shuffled = table.values.index_select(0, torch::tensor(order));
  const Tensor inputs = shuffled.index_select(1, torch::tensor(rest)).to(torch::kFloat32);
  Tensor targets = shuffled.index_select(1, torch::tensor(wanted));
  targets = from.classes ? targets.select(1, 0).to(torch::kInt64) : targets.to(torch::kFloat32);
  DataSplit split;
  split.train = {{inputs.narrow(0, 0, rows - held_out)}, {targets.narrow(0, 0, rows - held_out)}};
  split.validation = {{inputs.narrow(0, rows - held_out, held_out)},
                      {targets.narrow(0, rows - held_out, held_out)}};
  return split;
}

TableData read_table(const Json& json, const std::filesystem::path& folder) {
  TableData data;
  for (const auto& [key, value] : json.items()) {
    if (key == "csv") {
      data.csv = folder / text_at(value, "data/csv");
    } else if (key == "target" || key == "targets") {
      data.targets =
          texts_at(value.is_number_integer() ? Json(json_text(value)) : value, "data/target");
    } else if (key == "validation") {
      if (!value.is_number() || !(value.get<double>() > 0) || !(value.get<double>() < 1))
        refuse("data/validation", "a number between 0 and 1");
      data.validation = value.get<double>();
    } else if (key == "header") {
      if (!value.is_boolean()) refuse("data/header", "true or false");
      data.header = value.get<bool>();
    } else if (key == "classes") {
      if (!value.is_boolean()) refuse("data/classes", "true or false");
      data.classes = value.get<bool>();
    } else if (key == "separator") {
      const std::string text = text_at(value, "data/separator");
      if (text.size() != 1) refuse("data/separator", "one character");
      data.separator = text[0];
    } else if (key == "seed") {
      if (!value.is_number_unsigned()) refuse("data/seed", "a whole number from 0");
      data.seed = value.get<std::uint64_t>();
    } else {
      throw_unknown_name("key of data", key,
                         {"csv", "target", "validation", "header", "classes", "separator", "seed"});
    }
  }
  if (data.csv.empty()) refuse("data/csv", "the name of a file");
  if (data.targets.empty()) refuse("data/target", "the name of a column, or a list of them");
  if (data.classes && data.targets.size() != 1) refuse("data/target", "one column of classes");
  return data;
}

// --- keys ---

struct Context {
  NaProblem& problem;
  const Json& whole;
  const std::filesystem::path& folder;
};

void read_data(const Context& context, const Json& json) {
  if (json.is_object()) {
    const TableData table = read_table(json, context.folder);
    if (!std::filesystem::exists(table.csv))
      throw_error(ErrorCode::not_found, "'data/csv': {} does not exist", table.csv.string());
    context.problem.load_data([table] { return load_table(table); });
    return;
  }
  // Those of a built-in problem.
  const std::string name = text_at(json, "data");
  const NaProblem known = kBenchmarkProblems.at(benchmark_name(name)).make();
  context.problem.load_data([known] { return known.data(); });
}

void read_loss(const Context& context, const Json& json) {
  if (json.is_string()) {
    context.problem.loss(json.get<std::string>());
    return;
  }
  if (!json.is_object()) refuse("loss", "a name, or a dictionary by output, or a choice of names");
  if (json.contains("choice") || json.contains("categorical")) {
    const auto document = search::read_space_document(Json{{"loss", json}});
    context.problem.hyperparameters(document.spec);
    return;
  }
  std::map<std::string, std::string> losses;
  for (const auto& [output, name] : json.items()) losses[output] = text_at(name, "loss");
  std::map<std::string, double> weights;
  if (context.whole.contains("loss_weights"))
    for (const auto& [output, weight] : context.whole.at("loss_weights").items()) {
      if (!weight.is_number()) refuse("loss_weights", "a dictionary of numbers by output");
      weights[output] = weight.get<double>();
    }
  context.problem.loss(std::move(losses), std::move(weights));
}

void read_metrics(const Context& context, const Json& json) {
  if (!json.is_object()) {
    context.problem.metrics(texts_at(json, "metrics"));
    return;
  }
  std::map<std::string, std::vector<std::string>> metrics;
  for (const auto& [output, names] : json.items()) metrics[output] = texts_at(names, "metrics");
  context.problem.output_metrics(std::move(metrics));
}

void read_space(const Context& context, const Json& json) {
  const Json settings = context.whole.value("settings", Json());
  if (!settings.is_null() && !settings.is_object()) refuse("settings", "a dictionary");
  context.problem.search_space(text_at(json, "space"), search::value_from_json(settings));
}

void read_hyperparameters(const Context& context, const Json& json) {
  if (!json.is_object()) refuse("hyperparameters", "a dictionary");
  context.problem.hyperparameters(search::read_space_document(json).spec);
}

void read_post_training(const Context& context, const Json& json) {
  if (!json.is_object()) refuse("post_training", "a dictionary");
  PostTraining post;
  for (const auto& [key, value] : json.items()) {
    if (key == "num_epochs" || key == "repeat") {
      const auto number = whole_number<std::int64_t>(value);
      if (!number) refuse("post_training/" + key, "a whole number");
      (key == "repeat" ? post.repeat : post.num_epochs) = *number;
    } else if (key == "metrics") {
      post.metrics = texts_at(value, "post_training/metrics");
    } else if (key == "callbacks") {
      post.callbacks = search::value_from_json(value);
    } else {
      throw_unknown_name("key of post_training", key,
                         {"num_epochs", "repeat", "metrics", "callbacks"});
    }
  }
  context.problem.post_training(std::move(post));
}

using ReadKey = void (*)(const Context&, const Json&);
void nothing(const Context&, const Json&) {}

constexpr Entry<ReadKey> kKeyTable[] = {
    {"data", "a table, or the data of a built-in problem", read_data},
    {"space", "the name of a space", read_space},
    {"settings", "of the space", nothing},
    {"hyperparameters", "constants and domains", read_hyperparameters},
    {"preprocessing", "a name",
     [](const Context& context, const Json& json) {
       context.problem.preprocessing(text_at(json, "preprocessing"));
     }},
    {"loss", "a name, a dictionary by output, or a choice", read_loss},
    {"loss_weights", "by output", nothing},
    {"class_weights", "a number per class",
     [](const Context& context, const Json& json) {
       std::vector<double> weights;
       if (!json.is_array()) refuse("class_weights", "a list of numbers");
       for (const Json& each : json) {
         if (!each.is_number()) refuse("class_weights", "a list of numbers");
         weights.push_back(each.get<double>());
       }
       context.problem.class_weights(std::move(weights));
     }},
    {"metrics", "names, or a dictionary by output", read_metrics},
    {"objective", "[-][val_]METRIC[__min|__max|__last]",
     [](const Context& context, const Json& json) {
       context.problem.objective(text_at(json, "objective"));
     }},
    {"post_training", "num_epochs, repeat, metrics, callbacks", read_post_training},
    {"seed", "of weights and shuffles",
     [](const Context& context, const Json& json) {
       if (!json.is_number_unsigned()) refuse("seed", "a whole number from 0");
       context.problem.seed(json.get<std::uint64_t>());
     }},
};
constexpr Registry<ReadKey> kKeys{"key", kKeyTable};

}  // namespace

NaProblem read_problem_file(const Json& json, const std::filesystem::path& file) {
  try {
    if (!json.is_object()) refuse("the file", "a dictionary");
    for (const char* needed : {"data", "space"})
      if (!json.contains(needed))
        throw_error(ErrorCode::invalid_argument, "'{}' is missing", needed);
    NaProblem problem;
    const std::filesystem::path folder = file.parent_path();
    for (const auto& [key, value] : json.items())
      kKeys.at(key).make({problem, json, folder}, value);
    return problem;
  } catch (const Error& error) {
    throw Error(error.code(), file.string() + ": " + error.message());
  }
}

}  // namespace kolo::nas

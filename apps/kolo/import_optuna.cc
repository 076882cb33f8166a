// Studies of Optuna: its journal files (lines of JSON, one operation each) and its SQLite
// databases.
//
// A categorical value is stored as its place among the choices of its distribution, a whole number
// as a floating-point one. Numbers of states and operations are Optuna's.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "imported_study.h"
#include "store/database.h"
#include "tune/protocol/value_text.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using tune::Value;

/// "2026-11-17 10:00:00.123456", with a blank or a T, in the time of this place; 0 = not known.
double date_of(const std::string& text) {
  std::tm time{};
  char separator = ' ';
  double seconds = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d%c%d:%d:%lf", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &separator, &time.tm_hour, &time.tm_min, &seconds) != 7)
    return 0;
  const auto is_within = [](double value, double least, double most) {
    return value >= least && value <= most;
  };
  if (!is_within(time.tm_year, 1970, 9999) || !is_within(time.tm_mon, 1, 12) ||
      !is_within(time.tm_mday, 1, 31) || !is_within(time.tm_hour, 0, 23) ||
      !is_within(time.tm_min, 0, 59) || !is_within(seconds, 0, 61))
    return 0;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  return static_cast<double>(std::mktime(&time)) + seconds;
}

/// `distribution` is a text of JSON.
Value parameter(double internal, std::string_view distribution) {
  const Json parsed = parse_json(distribution, "a distribution");
  try {
    const std::string kind = parsed.value("name", "");
    const Json attributes = parsed.value("attributes", Json::object());
    if (kind == "CategoricalDistribution") {
      const Json choices = attributes.value("choices", Json::array());
      if (!(internal >= 0 && internal < static_cast<double>(choices.size())))
        throw_error(ErrorCode::corruption, "a categorical value has no choice number {}", internal);
      return tune::decode(json_text(choices[static_cast<std::size_t>(internal)]), "a choice");
    }
    constexpr double kLargest = 9.2e18;
    if (kind.starts_with("Int") && internal > -kLargest && internal < kLargest)
      return Value(static_cast<std::int64_t>(internal));
    return Value(internal);
  } catch (const Json::exception& error) {
    throw_error(ErrorCode::corruption, "a distribution cannot be read: {}", error.what());
  }
}

std::vector<tune::Objective> objectives_of(const std::vector<bool>& maximizes,
                                           const ImportChoice& choice) {
  std::vector<tune::Objective> objectives;
  const std::string base = choice.metric.empty() ? "value" : choice.metric;
  for (std::size_t i = 0; i < maximizes.size(); ++i)
    objectives.push_back(
        {maximizes.size() == 1 ? base : fmt::format("{}_{}", base, i),
         maximizes[i] ? search::Direction::maximize : search::Direction::minimize});
  return objectives;
}

/// A trial while it is put together.
struct OptunaTrial {
  ImportedTrial trial;
  std::map<std::int64_t, double> steps{};
  std::vector<double> values{};

  /// A step as JSON names it.
  void set_step(const std::string& step, double value) {
    std::int64_t number = 0;
    const char* const end = step.data() + step.size();
    if (std::from_chars(step.data(), end, number).ptr == end) steps[number] = value;
  }

  ImportedTrial finish(const std::vector<tune::Objective>& objectives) && {
    if (!objectives.empty())
      for (const auto& [step, value] : steps)
        trial.reports.push_back(Value{{objectives.front().metric, value}, {"step", step}});
    Value::Dict last;
    for (std::size_t i = 0; i < std::min(values.size(), objectives.size()); ++i)
      last.emplace(objectives[i].metric, values[i]);
    if (!last.empty() && !trial.is_pruned) trial.reports.emplace_back(std::move(last));
    if (!trial.has_ended) trial.ended = trial.began;
    return std::move(trial);
  }
};

void set_state(ImportedTrial& trial, std::string_view state) {
  trial.has_ended = state == "COMPLETE" || state == "PRUNED" || state == "FAIL";
  trial.is_pruned = state == "PRUNED";
  if (state == "FAIL") trial.error = "the trial failed in Optuna";
}

[[noreturn]] void throw_choice(const fs::path& file, const std::vector<std::string>& names,
                               const ImportChoice& choice) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  if (names.empty())
    throw_error(ErrorCode::invalid_argument, "{}: there is no study", file.string());
  throw_error(ErrorCode::invalid_argument, "{}: {}; choose one by --study: {}", file.string(),
              choice.study.empty() ? "there are several studies"
                                   : fmt::format("there is no study '{}'", choice.study),
              all);
}

/// The place of the study that is meant.
std::size_t chosen(const fs::path& file, const std::vector<std::string>& names,
                   const ImportChoice& choice) {
  if (choice.study.empty() && names.size() == 1) return 0;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == choice.study) return i;
  throw_choice(file, names, choice);
}

enum Operation { create_study = 0, create_trial = 4, set_param, set_state_values, set_step };
constexpr std::string_view kStates[] = {"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
constexpr int kMaximize = 2;
constexpr const char* kWhere = "an operation";

/// A line as Python writes it: NaN and Infinity are numbers, which JSON has as texts.
Json journal_line(std::string_view text, const std::string& origin) {
  return parse_json(tune::encode(tune::decode(text, origin)), origin);
}
double number_in(const Json& value) {
  return tune::decode(json_text(value), "a number").as_number();
}

/// "" where it is null or missing.
std::string text_at(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

void set_state_of(OptunaTrial& trial, const Json& line) {
  set_state(trial.trial,
            kStates[json_field<std::size_t>(line, "state", kWhere) % std::size(kStates)]);
  if (const auto began = date_of(text_at(line, "datetime_start")); began > 0)
    trial.trial.began = began;
  if (const auto ended = date_of(text_at(line, "datetime_complete")); ended > 0)
    trial.trial.ended = ended;
  if (const Json values = line.value("values", Json()); values.is_array())
    for (const auto& value : values) trial.values.push_back(number_in(value));
  else if (const Json value = line.value("value", Json()); value.is_number())
    trial.values.push_back(number_in(value));
}

/// A trial may be whole already: study.add_trial() and enqueue_trial() write it so.
OptunaTrial journal_trial(const Json& line) {
  OptunaTrial made;
  made.trial.has_ended = false;
  made.trial.began = date_of(text_at(line, "datetime_start"));
  if (!line.contains("state")) return made;
  set_state_of(made, line);
  const Json distributions = line.value("distributions", Json::object());
  const Json parameters = line.value("params", Json::object());
  const Json steps = line.value("intermediate_values", Json::object());
  for (const auto& [name, value] : parameters.items())
    made.trial.config.as_dict().insert_or_assign(
        name, parameter(number_in(value), distributions.at(name).get<std::string>()));
  for (const auto& [step, value] : steps.items()) made.set_step(step, number_in(value));
  return made;
}

}  // namespace

ImportedStudy import_optuna_journal(const fs::path& file, const ImportChoice& choice) {
  struct Study {
    std::string name;
    std::vector<bool> maximizes;
  };
  std::vector<Study> studies;
  std::vector<std::pair<std::size_t, OptunaTrial>> trials;  // with their studies
  const std::string text = read_file(file);
  std::size_t number = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    ++number;
    end = text.find('\n', at);
    if (end == std::string::npos) break;  // its writer was killed in the middle of it
    const Json line = journal_line(std::string_view(text).substr(at, end - at),
                                   fmt::format("{}, line {}", file.string(), number));
    try {
      const auto trial_of = [&]() -> OptunaTrial& {
        const auto id = json_field<std::size_t>(line, "trial_id", kWhere);
        if (id >= trials.size())
          throw_error(ErrorCode::corruption, "no line before it has begun trial {}", id);
        return trials[id].second;
      };
      switch (json_field<int>(line, "op_code", kWhere)) {
        case create_study: {
          Study study{line.at("study_name").get<std::string>(), {}};
          for (const auto& direction : line.at("directions"))
            study.maximizes.push_back(whole_number<int>(direction) == kMaximize);
          studies.push_back(std::move(study));
          break;
        }
        case create_trial:
          trials.emplace_back(json_field<std::size_t>(line, "study_id", kWhere),
                              journal_trial(line));
          break;
        case set_param:
          trial_of().trial.config.as_dict().insert_or_assign(
              line.at("param_name").get<std::string>(),
              parameter(number_in(line.at("param_value_internal")),
                        line.at("distribution").get<std::string>()));
          break;
        case set_state_values: set_state_of(trial_of(), line); break;
        case set_step:
          trial_of().steps[json_field<std::int64_t>(line, "step", kWhere)] =
              number_in(line.at("intermediate_value"));
          break;
        default: break;  // attributes, and what later versions add
      }
    } catch (const Error& error) {
      throw_error(ErrorCode::corruption, "{}, line {}: {}", file.string(), number, error.message());
    } catch (const std::exception& error) {
      throw_error(ErrorCode::corruption, "{}, line {}: {}", file.string(), number, error.what());
    }
  }
  std::vector<std::string> names;
  for (const auto& study : studies) names.push_back(study.name);
  const std::size_t place = chosen(file, names, choice);
  ImportedStudy study{.name = names[place], .tool = "Optuna"};
  study.objectives = objectives_of(studies[place].maximizes, choice);
  for (auto& [owner, trial] : trials)
    if (owner == place) study.trials.push_back(std::move(trial).finish(study.objectives));
  return study;
}

namespace {

ImportedStudy read_optuna_database(const fs::path& file, const fs::path& copy,
                                   const ImportChoice& choice) {
  const auto database = store::open_database(copy.string(), {.create = false});
  std::vector<std::string> names;
  std::vector<std::int64_t> ids;
  auto& studies = database->prepare("SELECT study_id, study_name FROM studies ORDER BY study_id");
  while (studies.next()) {
    ids.push_back(studies.integer(0));
    names.emplace_back(studies.text(1));
  }
  const std::size_t place = chosen(file, names, choice);
  std::vector<bool> maximizes;
  auto& directions = database->prepare(
      "SELECT direction FROM study_directions WHERE study_id = $1 ORDER BY objective");
  directions.bind(1, ids[place]);
  while (directions.next()) maximizes.push_back(directions.text(0) == "MAXIMIZE");
  ImportedStudy study{.name = names[place], .tool = "Optuna"};
  study.objectives = objectives_of(maximizes, choice);

  std::map<std::int64_t, OptunaTrial> trials;
  auto& rows = database->prepare(
      "SELECT trial_id, state, COALESCE(datetime_start, ''), COALESCE(datetime_complete, '') FROM "
      "trials WHERE study_id = $1 ORDER BY number");
  rows.bind(1, ids[place]);
  while (rows.next()) {
    auto& trial = trials[rows.integer(0)].trial;
    set_state(trial, rows.text(1));
    trial.began = date_of(std::string(rows.text(2)));
    trial.ended = date_of(std::string(rows.text(3)));
  }
  // Rows of other studies' trials are passed over.
  const auto each = [&](const char* sql, auto&& take) {
    auto& row = database->prepare(sql);
    while (row.next())
      if (const auto found = trials.find(row.integer(0)); found != trials.end())
        take(found->second, row);
  };
  each("SELECT trial_id, param_name, param_value, distribution_json FROM trial_params",
       [](OptunaTrial& trial, store::Statement& row) {
         trial.trial.config.as_dict().insert_or_assign(std::string(row.text(1)),
                                                       parameter(row.number(2), row.text(3)));
       });
  each("SELECT trial_id, value FROM trial_values WHERE value IS NOT NULL ORDER BY objective",
       [](OptunaTrial& trial, store::Statement& row) { trial.values.push_back(row.number(1)); });
  each(
      "SELECT trial_id, step, intermediate_value FROM trial_intermediate_values WHERE "
      "intermediate_value IS NOT NULL",
      [](OptunaTrial& trial, store::Statement& row) {
        trial.steps[row.integer(1)] = row.number(2);
      });
  for (auto& [id, trial] : trials)
    study.trials.push_back(std::move(trial).finish(study.objectives));
  return study;
}

}  // namespace

ImportedStudy import_optuna_sqlite(const fs::path& file, const ImportChoice& choice) {
  // A copy: whoever opens a database may write to it.
  const TempDir copy;
  const fs::path database = copy.path() / "study.db";
  for (const char* ending : {"", "-wal"})
    if (fs::exists(file.string() + ending))
      fs::copy_file(file.string() + ending, database.string() + ending);
  try {
    return read_optuna_database(file, database, choice);
  } catch (const Error& error) {
    const std::string& why = error.message();
    if (why.starts_with(file.string())) throw;
    // What speaks of the copy says nothing to the user.
    const std::string prefix = database.string() + ": ";
    throw_error(ErrorCode::corruption, "{}: it cannot be read as a database of Optuna: {}",
                file.string(), why.starts_with(prefix) ? why.substr(prefix.size()) : why);
  }
}

}  // namespace kolo::app

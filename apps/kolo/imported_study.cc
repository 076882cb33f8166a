// import_study() recognises the tool by what it finds: the files of a folder, or the first bytes
// and the ending of a file. Ray Tune is tried before TensorBoard, because its folders have event
// files as well. An import becomes one batch: trials follow each other in the sequence of the
// study, and each has its reports between its start and its end. Where a report has no time of its
// own, the duration of the trial is divided evenly among its reports. The study is created, claimed
// and written in this order, and removed again if the write fails, so that no half of a study
// remains.
#include "imported_study.h"

#include <algorithm>

#include "base/clock.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "events/event_reader.h"
#include "hps/results/results_csv.h"
#include "kolo/search/trial.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study.h"
#include "tune/study/study_claim.h"
#include "tune/study/study_spec.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using tune::Value;

constexpr std::string_view kSqliteMagic = "SQLite format 3";

/// A pipe may never end, and a device has no end.
void require_regular(const fs::path& file) {
  if (fs::exists(file) && !fs::is_regular_file(file))
    throw_error(ErrorCode::invalid_argument,
                "{}: it is a pipe, a device or the like; write its content to a file and import "
                "that",
                file.string());
}

std::string read_regular(const fs::path& file) {
  require_regular(file);
  return read_file(file);
}

/// Files of JSON lines, one of which may be torn at the end.
std::vector<Value> json_lines(const fs::path& file) {
  std::vector<Value> lines;
  const std::string text = read_regular(file);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    try {
      if (!line.empty()) lines.push_back(tune::decode(line, file.string()));
    } catch (const Error&) {
      if (end != std::string::npos) throw;  // else the writer was killed in the middle of it
    }
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return lines;
}

bool is_ray_trial(const fs::directory_entry& entry) {
  return entry.is_directory() && fs::exists(entry.path() / "result.json");
}

bool has_ray_trials(const fs::path& folder) {
  const auto entries = fs::directory_iterator(folder);
  return std::any_of(begin(entries), end(entries), is_ray_trial);
}

bool has_event_files(const fs::path& folder) {
  const auto entries = fs::recursive_directory_iterator(folder);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return events::is_event_file(entry.path());
  });
}

/// Throws corruption, naming the file, if it is something else than names and values.
const Value& require_dict(const Value& value, const fs::path& file) {
  if (!value.is_dict())
    throw_error(ErrorCode::corruption, "{}: it must have objects of JSON, as Ray Tune writes them",
                file.string());
  return value;
}

ImportedTrial ray_trial(const fs::path& folder) {
  ImportedTrial trial;
  const fs::path parameters = folder / "params.json", results = folder / "result.json";
  if (fs::exists(parameters))
    trial.config =
        require_dict(tune::decode(read_regular(parameters), parameters.string()), parameters);
  for (Value& line : json_lines(results)) {
    require_dict(line, results);
    auto& fields = line.as_dict();
    if (const Value* time = line.find_path("timestamp"); time != nullptr && time->is_number()) {
      if (trial.reports.empty()) trial.began = time->as_number();
      trial.ended = time->as_number();
    }
    fields.erase("config");
    trial.reports.push_back(std::move(line));
  }
  for (const char* name : {"error.txt", "error.pkl"})
    if (trial.error.empty() && fs::exists(folder / name))
      trial.error = "the trial failed in Ray Tune; see " + (folder / name).string();
  return trial;
}

store::TrialRecord record_of(const ImportedTrial& trial, std::int64_t number) {
  store::TrialRecord record;
  record.number = number;
  record.status = !trial.has_ended      ? store::TrialStatus::paused
                  : trial.error.empty() ? store::TrialStatus::terminated
                                        : store::TrialStatus::error;
  tune::require_shallow(trial.config, "a configuration");
  record.config = tune::encode(trial.config);
  record.created = trial.began;
  record.started = trial.began;
  if (trial.has_ended) record.ended = trial.ended;
  record.seconds = std::max(0.0, trial.ended - trial.began);
  record.iteration = std::ssize(trial.reports);
  record.failures = trial.error.empty() ? 0 : 1;
  record.error = trial.error;
  if (trial.is_pruned) {
    record.why = "it was pruned";
    record.outcome =
        tune::encode(Value{{"state", static_cast<std::int64_t>(search::TrialState::pruned)}});
  }
  return record;
}

/// Everything as one step of a study that has ended.
store::StudyBatch batch_of(const ImportedStudy& study) {
  store::StudyBatch batch;
  double first = 0, last = 0;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const ImportedTrial& trial = study.trials[i];
    auto record = record_of(trial, static_cast<std::int64_t>(i));
    record.asked_seq = ++batch.to_seq;
    for (std::size_t report = 0; report < trial.reports.size(); ++report) {
      store::ReportRecord row;
      row.seq = ++batch.to_seq;
      row.trial = record.number;
      row.iteration = static_cast<std::int64_t>(report) + 1;
      const Value* seconds = trial.reports[report].find_path("time_total_s");
      const double share =
          static_cast<double>(report + 1) / static_cast<double>(trial.reports.size());
      row.seconds = seconds != nullptr && seconds->is_number() ? seconds->as_number()
                                                               : record.seconds * share;
      row.time = trial.began + row.seconds;
      tune::require_shallow(trial.reports[report], "a report");
      row.metrics = tune::encode(trial.reports[report]);
      record.seconds = std::max(record.seconds, row.seconds);
      batch.reports.push_back(std::move(row));
    }
    if (trial.has_ended) record.ended_seq = ++batch.to_seq;
    if (trial.began > 0) first = first == 0 ? trial.began : std::min(first, trial.began);
    last = std::max(last, trial.ended);
    batch.trials.push_back(std::move(record));
  }
  batch.elapsed = std::max(0.0, last - first);
  batch.status = store::StudyStatus::finished;
  return batch;
}

}  // namespace

std::string name_of_folder(const fs::path& folder) {
  return (fs::absolute(folder) / "").lexically_normal().parent_path().filename();
}

ImportedStudy import_deephyper(const fs::path& file, const ImportChoice& choice) {
  require_regular(file);
  const auto table = hps::read_results(file);
  ImportedStudy study{.name = name_of_folder(fs::absolute(file).parent_path()),
                      .tool = "DeepHyper"};
  for (std::size_t i = 0; i < table.objectives; ++i) {
    const std::string base = choice.metric.empty() ? "objective" : choice.metric;
    study.objectives.push_back(
        {table.objectives == 1 ? base : fmt::format("{}_{}", base, i),
         table.minimizes(i) ? search::Direction::minimize : search::Direction::maximize});
  }
  for (const auto& row : table.rows) {
    ImportedTrial trial;
    trial.config = hps::nested_config(row.parameters);
    trial.error = row.failure;
    trial.began = row.submitted;
    trial.ended = row.gathered;
    Value::Dict metrics;
    for (const auto& [name, value] : row.metadata) metrics.emplace(name, value);
    for (std::size_t i = 0; i < row.objectives.size(); ++i)
      metrics.insert_or_assign(study.objectives[i].metric, row.objectives[i]);
    if (!row.failed()) trial.reports.emplace_back(std::move(metrics));
    study.trials.push_back(std::move(trial));
  }
  return study;
}

ImportedStudy import_ray(const fs::path& folder) {
  std::vector<fs::path> trials;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_ray_trial(entry)) trials.push_back(entry.path());
  if (trials.empty())
    throw_error(ErrorCode::invalid_argument,
                "{}: no folder in it has a result.json, as Ray Tune writes it, and there are no "
                "event files of TensorBoard below it",
                folder.string());
  std::sort(trials.begin(), trials.end());
  ImportedStudy study{.name = name_of_folder(folder), .tool = "Ray Tune"};
  for (const auto& trial : trials) study.trials.push_back(ray_trial(trial));
  return study;
}

ImportedStudy import_study(const fs::path& path, const ImportChoice& choice) {
  if (fs::is_directory(path)) {
    if (fs::exists(path / "results.csv")) return import_deephyper(path / "results.csv", choice);
    // Ray Tune writes event files, too, beside files that say more.
    return has_ray_trials(path) || !has_event_files(path) ? import_ray(path)
                                                          : import_tensorboard(path);
  }
  const std::string text = read_regular(path);
  if (text.starts_with(kSqliteMagic)) return import_optuna_sqlite(path, choice);
  if (text.starts_with('{')) return import_optuna_journal(path, choice);
  if (path.extension() == ".csv") return import_deephyper(path, choice);
  throw_error(ErrorCode::invalid_argument,
              "{}: it is neither a database nor a journal of Optuna, nor a results.csv of "
              "DeepHyper, nor a folder of Ray Tune",
              path.string());
}

void write_imported(store::StudyStore& store, const ImportedStudy& study) {
  tune::check_study_name(study.name);
  tune::StudySpec spec;
  spec.trainable = "imported";
  spec.objectives = study.objectives;
  spec.search = "imported from " + study.tool;
  spec.num_samples = std::ssize(study.trials);
  auto batch = batch_of(study);
  batch.now = store.lease_date();
  store::StudyRecord record;
  record.name = study.name;
  record.spec = spec.to_json();
  record.created = system_clock().date();
  const auto id = store.create(record);
  try {
    const tune::StudyClaim claim(store, id);
    store.write(id, batch);
  } catch (...) {
    store.remove(id);  // all or nothing
    throw;
  }
}

}  // namespace kolo::app

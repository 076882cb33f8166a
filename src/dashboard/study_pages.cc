#include "dashboard/study_pages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "base/files.h"
#include "search/space/json_value.h"
#include "tune/output/row_filter.h"
#include "tune/output/studies_table.h"
#include "tune/output/trials_table.h"
#include "tune/study/stop_request.h"
#include "tune/study/study_reader.h"

namespace kolo::dashboard {
namespace {

// What a page draws is bounded, however large the study is.
constexpr std::size_t kDrawnTrials = 1000;
constexpr std::size_t kDrawnCurves = 200;
constexpr std::size_t kCurvePoints = 100;
constexpr std::size_t kTrialPoints = 1000;
constexpr std::size_t kLogBytes = 64 * 1024;
constexpr std::size_t kKeptStudies = 4;

Json json_of(const tune::Value& value) {
  const bool odd = value.is_number() && !std::isfinite(value.as_number());
  return odd ? Json(value.to_string()) : search::json_from_value(value);
}

Json json_of(const tune::Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const auto& cell : row) cells.push_back(json_of(cell));
    rows.push_back(std::move(cells));
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

/// The last value of the first objective; larger is worse. Trials without one come last.
double badness(const tune::StudyData& study, const tune::TrialResult& trial) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (study.spec.objectives.empty()) return kNone;
  const auto& objective = study.spec.objectives.front();
  const auto* value = trial.last_result.find_path(objective.metric);
  if (value == nullptr || !value->is_number() || std::isnan(value->as_number())) return kNone;
  return objective.direction == search::Direction::minimize ? value->as_number()
                                                            : -value->as_number();
}

/// At most so many trials, by number: the better half of them the best ones, the others evenly from
/// the rest.
std::vector<std::size_t> chosen(const tune::StudyData& study, std::size_t most) {
  const auto trials = study.analysis.trials();
  std::vector<std::size_t> all(trials.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.size() <= most) return all;
  std::vector<double> bad(trials.size());
  for (std::size_t i = 0; i < bad.size(); ++i) bad[i] = badness(study, trials[i]);
  const auto half = all.begin() + static_cast<std::ptrdiff_t>(most / 2);
  std::nth_element(all.begin(), half, all.end(),
                   [&](std::size_t left, std::size_t right) { return bad[left] < bad[right]; });
  std::sort(half, all.end());
  std::vector<std::size_t> some(all.begin(), half);
  const double step =
      static_cast<double>(all.end() - half) / static_cast<double>(most - some.size());
  for (std::size_t i = 0; some.size() < most; ++i)
    some.push_back(half[static_cast<std::ptrdiff_t>(static_cast<double>(i) * step)]);
  std::sort(some.begin(), some.end());
  return some;
}

}  // namespace

struct StudyPages::Open {
  explicit Open(const std::string& url)
      : database(store::open_database(url, {.create = false})), store(*database) {}
  std::unique_ptr<store::Database> database;
  store::StudyStore store;
};

template <class Work>
auto StudyPages::with_store(Work work) {
  const MutexLock lock(mutex_);
  try {
    if (!open_) open_ = std::make_shared<Open>(url_);
    return work(open_->store);
  } catch (const Error& error) {
    // A server that went away comes back under a new connection.
    if (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io) open_.reset();
    throw;
  }
}

StudyPages::Snapshot StudyPages::snapshot(const std::string& name) {
  return with_store([&](store::StudyStore& store) KOLO_REQUIRES(mutex_) {
    const auto now = store.at(name);
    const auto found = std::find_if(snapshots_.begin(), snapshots_.end(), [&](const Snapshot& one) {
      return one->study.id == now.id && one->study.name == now.name;
    });
    if (found != snapshots_.end() && (*found)->study.seq == now.seq &&
        (*found)->study.status == now.status) {
      snapshots_.splice(snapshots_.begin(), snapshots_, found);
      return snapshots_.front();
    }
    if (found != snapshots_.end()) snapshots_.erase(found);
    snapshots_.push_front(
        std::make_shared<const tune::StudyData>(tune::read_study_data(store, name)));
    if (snapshots_.size() > kKeptStudies) snapshots_.pop_back();
    return snapshots_.front();
  });
}

Json StudyPages::studies() try {
  return with_store([](store::StudyStore& store) {
    Json table = json_of(tune::studies_table(store));
    table["planned"] = Json::array();
    for (const auto& study : store.studies())
      table["planned"].push_back(tune::StudySpec::from_json(study.spec).num_samples);
    return table;
  });
} catch (const Error& error) {
  if (error.code() != ErrorCode::not_found) throw;
  return {{"columns", Json::array()}, {"rows", Json::array()}};  // before the first study
}

Json StudyPages::study(const std::string& name) {
  const auto data = snapshot(name);
  const auto metrics = tune::metrics_of(*data);
  Json json = tune::study_json(*data, metrics);
  json["state"] = with_store(
      [&](store::StudyStore& store) { return std::string(tune::state_of(store, data->study)); });
  json["planned"] = data->spec.num_samples;
  json["seq"] = data->study.seq;
  Json counts = Json::object();
  std::size_t early = 0;
  for (const auto& trial : data->analysis.trials()) {
    auto& count = counts[std::string(to_string(trial.status))];
    count = count.is_null() ? 1 : count.get<int>() + 1;
    early += trial.stopped ? 1 : 0;
  }
  json["counts"] = std::move(counts);
  json["early"] = early;
  json["total"] = data->analysis.trials().size();
  json["trials"] = Json::array();
  for (const std::size_t i : chosen(*data, kDrawnTrials)) {
    Json trial = tune::trial_json(*data, data->analysis.trials()[i], metrics);
    trial.erase("files");
    const auto error = trial["error"].get<std::string>();
    trial["error"] = error.substr(0, error.find('\n'));
    json["trials"].push_back(std::move(trial));
  }
  return json;
}

Json StudyPages::trials(const TrialsQuestion& question) {
  const auto data = snapshot(question.study);
  tune::Table table = tune::trials_table(data->analysis);
  // The number, by which pages ask for a trial, whatever the order is.
  table.columns.insert(table.columns.begin(), "trial");
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    table.rows[i].insert(table.rows[i].begin(), static_cast<std::int64_t>(i));
  if (!question.filter.empty()) tune::keep_rows(table, question.filter);
  if (!question.sort.empty()) tune::sort_rows(table, {question.sort}, question.descending);
  const std::size_t matching = table.rows.size();
  const auto begin = std::min(question.offset, matching);
  const auto end = std::min(begin + question.limit, matching);
  table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(end), table.rows.end());
  table.rows.erase(table.rows.begin(), table.rows.begin() + static_cast<std::ptrdiff_t>(begin));
  Json json = json_of(table);
  json["matching"] = matching;
  json["offset"] = begin;
  return json;
}

Json StudyPages::curves(const std::string& name, const std::string& metric) {
  const auto data = snapshot(name);
  Json curves = Json::object();
  for (const std::size_t i : chosen(*data, kDrawnCurves))
    curves[std::to_string(i)] = tune::curve_json(data->analysis.trials()[i], metric, kCurvePoints);
  return curves;
}

Json StudyPages::importance(const std::string& name) {
  const auto data = snapshot(name);
  const MutexLock lock(importance_mutex_);
  for (const auto& [of, json] : importances_)
    if (of == data) return json;
  importances_.emplace_front(data, tune::importance_json(*data));
  if (importances_.size() > kKeptStudies) importances_.pop_back();
  return importances_.front().second;
}

Json StudyPages::trial(const std::string& name, std::int64_t number) {
  const auto data = snapshot(name);
  const auto trials = data->analysis.trials();
  if (number < 0 || number >= std::ssize(trials))
    throw_error(ErrorCode::not_found, "study {} has no trial {}; it has {} trials", name, number,
                trials.size());
  const auto& trial = trials[static_cast<std::size_t>(number)];
  const auto metrics = tune::metrics_of(*data);
  Json json = tune::trial_json(*data, trial, metrics);
  json["study"] = tune::study_json(*data, metrics);
  json["directory"] = trial.directory.string();
  json["failures"] = trial.failures;
  json["curves"] = Json::object();
  for (const auto& metric : metrics)
    json["curves"][metric] = tune::curve_json(trial, metric, kTrialPoints);
  json["checkpoints"] = Json::array();
  for (const auto& checkpoint : trial.checkpoints)
    json["checkpoints"].push_back(
        {{"path", checkpoint.path.string()}, {"iteration", checkpoint.iteration}});
  json["events"] = Json::array();
  for (const auto& event : data->events[static_cast<std::size_t>(number)])
    json["events"].push_back(
        {{"time", event.time}, {"kind", event.kind}, {"detail", event.detail}});
  json["decisions"] = with_store([&](store::StudyStore& store) {
    Json decisions = Json::array();
    for (const auto& report : store.reports_of(data->study.id, number))
      if (!report.reason.empty())
        decisions.push_back(
            {{"time", report.time}, {"iteration", report.iteration}, {"reason", report.reason}});
    return decisions;
  });
  json["logs"] = Json::object();
  for (const char* file : {"stdout", "stderr"})
    json["logs"][file] = tail_of_file(trial.directory / file, kLogBytes);
  return json;
}

void StudyPages::stop(const std::string& name, std::optional<std::int64_t> trial) {
  with_store([&](store::StudyStore& store) {
    tune::request_stop(store, store.at(name), trial);
    return 0;
  });
}

}  // namespace kolo::dashboard

// The database decides, and results.csv follows it. A row is appended when its trial ends;
// catch_up() adds the rows that a crash has left out, and recognises those that are there by their
// job id. A row that cannot be written waits in a queue, in order, and is tried again at every
// step, so that a full disk does not stop the search. The Pareto front is kept up to date row by
// row, which costs one pass over the front. move_aside() checks for a running process before it
// renames the first file.
#include "hps/search/search_files.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "hps/results/result_source.h"
#include "hps/search/evaluation.h"
#include "search/space/json_value.h"
#include "store/study_store.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/trial_names.h"

namespace kolo::hps {
namespace fs = std::filesystem;
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What a search writes into its folder.
constexpr const char* kFiles[] = {"results.csv",     kOlderResults, kTornResults, "kolo.log",
                                  "init_infos.json", "save",        "search"};

/// The fields that a search reads again.
void check_infos(const Json& infos, const std::string& file) {
  if (!infos.is_object())
    throw_error(ErrorCode::invalid_argument, "{}: it is no JSON object", file);
  for (const char* key : {"id", "kind", "search", "problem", "job"})
    if (infos.contains(key)) static_cast<void>(json_field<std::string>(infos, key, file));
  for (const char* key : {"seed", "first_number", "continued"})
    if (infos.contains(key)) static_cast<void>(json_field<std::uint64_t>(infos, key, file));
}

/// The columns of a space: an architecture is one, whatever its length.
std::vector<std::string> columns_of(const search::Space& space) {
  std::vector<std::string> columns;
  for (const auto& parameter : space.parameters()) {
    std::string path = parameter.path;
    // An element of a list: the list is the column.
    while (!path.empty()) {
      const auto slash = path.rfind('/');
      if (slash == std::string::npos || slash + 1 == path.size() ||
          path.find_first_not_of("0123456789", slash + 1) != std::string::npos)
        break;
      path.resize(slash);
    }
    if (columns.empty() || columns.back() != path) columns.push_back(path);
  }
  return columns;
}

}  // namespace

SearchLog::SearchLog(const fs::path& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_.valid()) throw_errno("cannot open {}", path.string());
}

void SearchLog::write(const std::string& event, Json fields) noexcept {
  try {
    fields["time"] = seconds_now();
    fields["event"] = event;
    write_all(file_.get(), json_text(fields) + "\n", "kolo.log");
  } catch (const std::exception&) {
    // A full disk, say: the database has what counts.
  }
}

EarlierSearch look_at_folder(const fs::path& log_dir) {
  EarlierSearch earlier;
  earlier.has_database = fs::exists(log_dir / kDatabase);
  earlier.has_results = fs::exists(log_dir / "results.csv") || fs::exists(log_dir / kOlderResults);
  const fs::path infos = log_dir / "init_infos.json";
  if (!fs::exists(infos)) return earlier;
  earlier.infos = parse_json(read_file(infos), infos.string());
  check_infos(earlier.infos, infos.string());
  return earlier;
}

void move_aside(const fs::path& log_dir) {
  const auto earlier = look_at_folder(log_dir);
  if (!earlier.has_database && !earlier.has_results) return;
  if (earlier.has_database) {
    auto database = store::open_database((log_dir / kDatabase).string());
    store::StudyStore store(*database);
    for (const auto& study : store.studies())
      if (const auto holder = store.holder(study.id, store.lease_date()))
        throw_error(ErrorCode::failed_precondition,
                    "process {} on {} is searching in {}; choose another --log-dir", holder->pid,
                    holder->host, log_dir.string());
  }
  const std::string name = "earlier-" + tune::date_text(seconds_now());
  fs::path place = log_dir / name;
  for (int i = 1; fs::exists(place); ++i) place = log_dir / fmt::format("{}-{}", name, i);
  fs::create_directories(place);
  for (const auto& entry : fs::directory_iterator(log_dir)) {
    const std::string file = entry.path().filename().string();
    const bool ours = file.starts_with(kDatabase) ||
                      std::find(std::begin(kFiles), std::end(kFiles), file) != std::end(kFiles) ||
                      file.starts_with("search-");
    if (ours) fs::rename(entry.path(), place / file);
  }
}

SearchFiles::SearchFiles(const SearchPlan& plan, std::int64_t first_number)
    : agent_(plan.agent),
      agents_(plan.agents),
      first_number_(first_number),
      results_(plan.log_dir / "results.csv", columns_of(*plan.space), plan.objectives,
               plan.metadata),
      log_(plan.log_dir / "kolo.log") {
  for (std::size_t i = 0; i < plan.objectives; ++i)
    metrics_.push_back(objective_name(i, plan.objectives));
}

std::string SearchFiles::job_id(std::int64_t number) const {
  const std::string own = std::to_string(first_number_ + number);
  return agents_ == 1 ? own : fmt::format("{}.{}", agent_, own);
}

void SearchFiles::count(const ResultRow& row) {
  ++summary_.evaluations;
  if (row.failed()) {
    ++summary_.failures;
    if (summary_.first_error.empty())
      summary_.first_error = row.error.empty() ? row.failure : row.error;
    return;
  }
  add_to_front(row);
  if (!summary_.best || row.objectives.front() > summary_.best->objectives.front())
    summary_.best = row;
}

void SearchFiles::add_to_front(const ResultRow& row) {
  if (row.objectives.size() < 2) return;
  // All objectives are maximised.
  const auto surpasses = [](const ResultRow& one, const ResultRow& other) {
    return one.objectives != other.objectives &&
           std::equal(one.objectives.begin(), one.objectives.end(), other.objectives.begin(),
                      std::greater_equal<>());
  };
  auto& front = summary_.front;
  if (std::any_of(front.begin(), front.end(),
                  [&](const ResultRow& other) { return surpasses(other, row); }))
    return;
  std::erase_if(front, [&](const ResultRow& other) { return surpasses(row, other); });
  front.push_back(row);
}

void SearchFiles::take_over(const ResultRow& row) {
  count(row);
  if (!results_.known().contains(row.job_id)) results_.append(row);
}

void SearchFiles::add(const EndedTrial& trial) {
  ResultRow row = row_of(trial, metrics_, began_);
  row.job_id = job_id(trial.number);
  count(row);
  if (results_.known().contains(row.job_id)) return;
  Json fields{{"id", row.job_id},
              {"config", search::json_from_value(trial.config)},
              {"seconds", row.gathered - row.submitted}};
  if (row.failed())
    fields["failure"] = row.failure;
  else
    fields["objective"] =
        row.objectives.size() == 1 ? Json(row.objectives[0]) : Json(row.objectives);
  log_.write("result", std::move(fields));
  pending_.push_back(std::move(row));
  append_pending();
}

void SearchFiles::append_pending() {
  try {
    while (!pending_.empty()) {
      results_.append(pending_.front());
      pending_.pop_front();
    }
    complained_ = false;
  } catch (const Error& error) {
    if (!std::exchange(complained_, true))
      log::warning("results.csv waits: {}; the database is complete", error.message());
  }
}

void SearchFiles::on_step(const std::function<tune::StudyView(std::size_t)>& /*view*/) {
  if (!pending_.empty()) append_pending();
}

void SearchFiles::catch_up(double study_created, const std::vector<store::TrialRecord>& trials,
                           const std::unordered_map<std::int64_t, std::string>& last_reports) {
  began_ = study_created;
  for (const auto& trial : ended_trials(trials, last_reports)) add(trial);
}

void SearchFiles::on_trial_start(const tune::TrialInfo& trial) {
  started_.try_emplace(trial.number, seconds_now());
  log_.write("submit", {{"id", job_id(trial.number)}});
}

void SearchFiles::on_trial_complete(const tune::TrialInfo& trial) {
  const auto started = started_.extract(trial.number);
  const double now = seconds_now();
  add({trial.number, trial.config, trial.last_result, "", started ? started.mapped() : now, now});
}

void SearchFiles::on_trial_error(const tune::TrialInfo& trial) {
  const auto started = started_.extract(trial.number);
  const double now = seconds_now();
  add({trial.number, trial.config, trial.last_result, trial.error.empty() ? "F_error" : trial.error,
       started ? started.mapped() : now, now});
}

void SearchFiles::on_end(const std::function<tune::StudyView(std::size_t)>& view) {
  append_pending();
  if (!pending_.empty())
    log::warning("results.csv lacks {} evaluations; --resume adds them", pending_.size());
  log_.write("end", {{"evaluations", summary_.evaluations},
                     {"failures", summary_.failures},
                     {"elapsed", view(0).elapsed}});
}

void SearchFiles::on_message(const std::string& text) { log_.write("message", {{"text", text}}); }

}  // namespace kolo::hps

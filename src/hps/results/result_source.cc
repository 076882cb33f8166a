#include "hps/results/result_source.h"

#include <fstream>
#include <set>
#include <unordered_map>

#include "base/errors.h"
#include "hps/results/trial_rows.h"
#include "store/study_store.h"
#include "tune/study/study_reader.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResults = "results.csv";

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  if (fs::is_directory(whole, ignored)) return whole.has_filename() ? whole : whole.parent_path();
  return whole.parent_path();
}

/// A folder is named by itself; results.csv and kolo.db by their folder; another file by its own
/// name.
std::string name_of(const fs::path& path, int levels) {
  std::error_code ignored;
  fs::path place = folder_of(path);
  std::string name;
  if (!fs::is_directory(path, ignored) && path.filename() != kResults &&
      path.filename() != kDatabase) {
    name = path.stem().string();
    --levels;
  }
  for (; levels > 0 && place.has_filename(); --levels, place = place.parent_path())
    name.insert(0, place.filename().string() + (name.empty() ? "" : "/"));
  return name.empty() ? path.string() : name;
}

class CsvResults final : public ResultSource {
 public:
  explicit CsvResults(fs::path path) : path_(std::move(path)) {}
  [[nodiscard]] std::string name(int levels) const override { return name_of(path_, levels); }
  [[nodiscard]] fs::path folder() const override { return folder_of(path_); }
  [[nodiscard]] ResultsTable read() override { return read_results(path_); }

 private:
  fs::path path_;
};

class StudyResults final : public ResultSource {
 public:
  StudyResults(const std::string& database, const std::string& study)
      : database_(store::open_database(database, {.create = false})), store_(*database_) {
    if (!study.empty()) {
      study_ = store_.at(study);
      return;
    }
    const auto all = store_.studies();
    if (all.size() == 1) {
      study_ = all[0];
      return;
    }
    std::string names;
    for (const auto& one : all) names += (names.empty() ? "" : ", ") + one.name;
    throw_error(ErrorCode::not_found, "{} has {}; choose one with {}#STUDY", database_->name(),
                all.empty() ? "no study" : "the studies " + names, database_->name());
  }

  [[nodiscard]] std::string name(int levels) const override {
    if (database_->kind() != "sqlite") return study_.name;
    // Searches are named by their folder.
    if (study_.name == "search") return name_of(database_->name(), levels);
    return levels == 1 ? study_.name : name_of(database_->name(), levels - 1) + "/" + study_.name;
  }

  [[nodiscard]] fs::path folder() const override {
    return database_->kind() == "sqlite" ? folder_of(database_->name()) : fs::path();
  }

  [[nodiscard]] ResultsTable read() override {
    ResultsTable table;
    std::vector<std::string> metrics;
    for (const auto& objective : tune::objectives_of_spec(study_.spec)) {
      metrics.push_back(objective.metric);
      table.directions.push_back(objective.direction);
    }
    if (metrics.empty())
      throw_error(ErrorCode::failed_precondition,
                  "the study {} has no metric, so its trials cannot be compared", study_.name);
    table.objectives = metrics.size();
    std::unordered_map<std::int64_t, std::string> reports;
    for (auto& report : store_.last_reports(study_.id))
      reports.emplace(report.trial, std::move(report.metrics));
    std::set<std::string> parameters, metadata;
    for (const auto& trial : ended_trials(store_.trials(study_.id), reports)) {
      auto row = row_of(trial, metrics, study_.created);
      row.job_id = std::to_string(trial.number);
      for (const auto& [name, value] : row.parameters.as_dict()) parameters.insert(name);
      for (const auto& [name, value] : row.metadata) metadata.insert(name);
      table.rows.push_back(std::move(row));
    }
    table.parameters.assign(parameters.begin(), parameters.end());
    table.metadata.assign(metadata.begin(), metadata.end());
    return table;
  }

 private:
  std::unique_ptr<store::Database> database_;
  store::StudyStore store_;
  store::StudyRecord study_;
};

bool is_sqlite_file(const fs::path& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string begin(kMagic.size(), '\0');
  std::ifstream(path).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kMagic;
}

}  // namespace

std::unique_ptr<ResultSource> open_results(const std::string& where) {
  std::error_code ignored;
  const auto mark = where.rfind('#');
  const bool is_url = where.find("://") != std::string::npos;
  if (!is_url && (mark == std::string::npos || fs::exists(where, ignored))) {
    if (fs::is_regular_file(where, ignored) && is_sqlite_file(where))
      return std::make_unique<StudyResults>(where, "");
    const fs::path folder = where;
    if (!fs::exists(folder / kResults, ignored) && fs::exists(folder / kDatabase, ignored))
      return std::make_unique<StudyResults>((folder / kDatabase).string(), "");
    return std::make_unique<CsvResults>(where);
  }
  std::string database = where.substr(0, mark);
  const std::string study = mark == std::string::npos ? "" : where.substr(mark + 1);
  if (!is_url && fs::is_directory(database, ignored))
    database = (fs::path(database) / kDatabase).string();
  return std::make_unique<StudyResults>(database, study);
}

}  // namespace kolo::hps

#include "hps/analytics/searches.h"

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  if (fs::is_directory(whole, ignored)) return whole.has_filename() ? whole : whole.parent_path();
  return whole.parent_path();
}

/// A folder is named by itself; results.csv by its folder; another file by its own name.
std::string name_of(const fs::path& path, int levels) {
  std::error_code ignored;
  fs::path place = folder_of(path);
  std::string name;
  if (!fs::is_directory(path, ignored) && path.filename() != "results.csv") {
    name = path.stem().string();
    --levels;
  }
  for (; levels > 0 && place.has_filename(); --levels, place = place.parent_path())
    name.insert(0, place.filename().string() + (name.empty() ? "" : "/"));
  return name.empty() ? path.string() : name;
}

}  // namespace

SearchResults read_search(const fs::path& path) {
  SearchResults search;
  search.name = name_of(path, 1);
  search.table = read_results(path);
  const fs::path infos = folder_of(path) / "init_infos.json";
  std::error_code ignored;
  if (fs::exists(infos, ignored)) {
    const Json json = parse_json(read_file(infos), infos.string());
    if (json.is_object() && json.contains("num_workers") && json["num_workers"].is_number_integer())
      search.workers = json["num_workers"].get<int>();
  }
  return search;
}

std::vector<SearchResults> read_searches(const std::vector<fs::path>& paths) {
  std::vector<SearchResults> searches;
  for (const fs::path& path : paths) searches.push_back(read_search(path));
  for (int levels = 2; levels <= 4; ++levels) {
    std::map<std::string, int> count;
    for (const auto& search : searches) ++count[search.name];
    for (std::size_t i = 0; i < searches.size(); ++i)
      if (count[searches[i].name] > 1) searches[i].name = name_of(paths[i], levels);
  }
  return searches;
}

SearchSummaryRow summarize(const SearchResults& search, std::size_t after, std::size_t objective) {
  const ResultsTable& table = search.table;
  if (objective >= table.objectives)
    throw_error(ErrorCode::invalid_argument, "{}: there is no objective {}; it has {}, from 0",
                search.name, objective, table.objectives);
  SearchSummaryRow row{.name = search.name};
  double sum = 0;
  for (const ResultRow& one : table.rows) {
    if (one.status == "CANCELLED") continue;  // the search ended before it did
    const std::size_t i = row.evaluations++;
    if (one.failed()) {
      ++row.failures;
      continue;
    }
    const double value = one.objectives[objective];
    sum += value;
    if (!row.best || value > *row.best) {
      row.best = value;
      row.best_at = i + 1;
    }
    if (i < after) row.best_after = std::max(row.best_after.value_or(value), value);
  }
  if (row.best) row.mean = sum / static_cast<double>(row.evaluations - row.failures);
  if (table.older) {
    for (const ResultRow& one : table.rows) row.seconds = std::max(row.seconds, one.gathered);
    return row;
  }
  const Workload workload = workload_of(table);
  row.seconds = workload.seconds();
  const int workers = search.workers > 0 ? search.workers : workload.most();
  if (row.seconds > 0) row.utilisation = workload.utilisation(workers);
  return row;
}

Json summary_json(const SearchSummaryRow& row, std::size_t after) {
  Json json{{"name", row.name},
            {"evaluations", row.evaluations},
            {"failures", row.failures},
            {"seconds", row.seconds},
            {"after", after}};
  const auto put = [&](const char* key, const auto& value) {
    json[key] = value ? Json(*value) : Json();
  };
  put("best", row.best);
  put("best_at", row.best_at);
  put("best_after", row.best_after);
  put("mean", row.mean);
  put("utilisation", row.utilisation);
  return json;
}

}  // namespace kolo::hps

#include "hps/analytics/searches.h"

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "base/files.h"
#include "hps/results/result_source.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

SearchResults read(ResultSource& source) {
  SearchResults search{.name = source.name(1), .table = source.read()};
  const fs::path infos = source.folder() / "init_infos.json";
  std::error_code ignored;
  if (fs::exists(infos, ignored)) {
    const Json json = parse_json(read_file(infos), infos.string());
    if (json.is_object() && json.contains("num_workers"))
      search.workers = whole_number<int>(json["num_workers"]).value_or(search.workers);
  }
  return search;
}

}  // namespace

SearchResults read_search(const std::string& where) { return read(*open_results(where)); }

std::vector<SearchResults> read_searches(const std::vector<std::string>& where) {
  std::vector<std::unique_ptr<ResultSource>> sources;
  std::vector<SearchResults> searches;
  for (const auto& one : where) {
    sources.push_back(open_results(one));
    searches.push_back(read(*sources.back()));
  }
  for (int levels = 2; levels <= 4; ++levels) {
    std::map<std::string, int> count;
    for (const auto& search : searches) ++count[search.name];
    for (std::size_t i = 0; i < searches.size(); ++i)
      if (count[searches[i].name] > 1) searches[i].name = sources[i]->name(levels);
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
    if (!row.best || table.is_better(value, *row.best, objective)) {
      row.best = value;
      row.best_at = i + 1;
    }
    if (i < after && (!row.best_after || table.is_better(value, *row.best_after, objective)))
      row.best_after = value;
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

// With one objective, a stable sort gives the order, and the earlier row wins a tie. With several,
// Pareto fronts are removed one after the other until k rows are found, so that the cost depends on
// the fronts that are needed and not on all of them. No objective may be NaN: such a row belongs to
// no front, and the loop would not end. Readers of results therefore mark rows with such values as
// failed. YAML is written by hand: dictionaries as lines, everything else as JSON, which YAML
// contains.
#include "hps/analytics/top_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/csv.h"
#include "base/json.h"
#include "kolo/search/analysis.h"
#include "search/space/json_value.h"

namespace kolo::hps {
namespace {

/// By the first objective.
auto better_first(const ResultsTable& table) {
  return [&table](const ResultRow* a, const ResultRow* b) {
    return table.is_better(a->objectives[0], b->objectives[0], 0);
  };
}

/// Fronts, the best first, until k rows are in them. Each front costs one look at what is left.
std::vector<const ResultRow*> by_fronts(const ResultsTable& table,
                                        std::vector<const ResultRow*> rows, std::size_t k) {
  auto directions = table.directions;
  directions.resize(table.objectives, search::Direction::maximize);
  std::vector<const ResultRow*> sorted;
  while (!rows.empty() && sorted.size() < k) {
    std::vector<std::vector<double>> values;
    for (const ResultRow* row : rows) values.push_back(row->objectives);
    std::vector<bool> taken(rows.size(), false);
    const std::size_t begin = sorted.size();
    for (const std::size_t i : search::pareto_front(values, directions)) {
      taken[i] = true;
      sorted.push_back(rows[i]);
    }
    std::stable_sort(sorted.begin() + static_cast<std::ptrdiff_t>(begin), sorted.end(),
                     better_first(table));
    std::vector<const ResultRow*> rest;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!taken[i]) rest.push_back(rows[i]);
    rows = std::move(rest);
  }
  return sorted;
}

Json row_json(const ResultsTable& table, const ResultRow& row) {
  Json json{{"id", row.job_id},
            {"parameters", search::json_from_value(nested_config(row.parameters))}};
  for (std::size_t i = 0; i < row.objectives.size(); ++i)
    json[objective_column(i, table.objectives)] = row.objectives[i];
  if (!table.older) json["seconds"] = row.gathered - row.submitted;
  for (const auto& [name, value] : row.metadata)
    if (!name.starts_with("timestamp_")) json["metadata"][name] = search::json_from_value(value);
  return json;
}

bool is_plain(const std::string& key) {
  return !key.empty() && std::isalpha(static_cast<unsigned char>(key[0])) != 0 &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                  c == '/' || c == '.';
         });
}

/// Dictionaries by lines, everything inside lists as JSON, which YAML contains.
void write_yaml(const Json& json, std::size_t indent, std::string& out) {
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (!first) out += std::string(indent, ' ');
    first = false;
    // Words such as `null` and `yes` would not be read as text.
    out += is_plain(key) && key.size() > 1 && key != "null" && key != "true" && key != "false" &&
                   key != "yes" && key != "no" && key != "on" && key != "off"
               ? key
               : json_text(Json(key));
    if (value.is_object() && !value.empty()) {
      out += ":\n" + std::string(indent + 2, ' ');
      write_yaml(value, indent + 2, out);
    } else {
      out += ": " + json_text(value) + "\n";
    }
  }
}

}  // namespace

std::string objective_column(std::size_t index, std::size_t objectives) {
  return objectives == 1 ? "objective" : fmt::format("objective_{}", index);
}

std::vector<const ResultRow*> top_rows(const ResultsTable& table, std::size_t k) {
  std::vector<const ResultRow*> rows;
  for (const ResultRow& row : table.rows)
    if (!row.failed()) rows.push_back(&row);
  if (table.objectives > 1)
    rows = by_fronts(table, std::move(rows), k);
  else
    std::stable_sort(rows.begin(), rows.end(), better_first(table));
  if (rows.size() > k) rows.resize(k);
  return rows;
}

std::string rows_as_json(const ResultsTable& table, const std::vector<const ResultRow*>& rows) {
  Json json = Json::array();
  for (const ResultRow* row : rows) json.push_back(row_json(table, *row));
  return json_text(json, 2) + "\n";
}

std::string rows_as_yaml(const ResultsTable& table, const std::vector<const ResultRow*>& rows) {
  std::string out;
  for (const ResultRow* row : rows) {
    out += "- ";
    write_yaml(row_json(table, *row), 2, out);
  }
  return out.empty() ? "[]\n" : out;
}

std::string rows_as_csv(const ResultsTable& table, const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> names;
  for (const std::string& name : table.parameters) names.push_back("p:" + name);
  for (std::size_t i = 0; i < table.objectives; ++i)
    names.push_back(objective_column(i, table.objectives));
  names.insert(names.end(), {"job_id", "job_status", "m:timestamp_submit", "m:timestamp_gather"});
  std::vector<std::string> more;
  for (const std::string& name : table.metadata)
    if (!name.starts_with("timestamp_")) more.push_back(name);
  for (const std::string& name : more) names.push_back("m:" + name);
  std::string out = csv_line(names);
  for (const ResultRow* row : rows) {
    std::vector<std::string> fields;
    for (const std::string& name : table.parameters) {
      const auto& given = row->parameters.as_dict();
      const auto found = given.find(name);
      fields.push_back(found == given.end() ? "" : field_of_value(found->second));
    }
    for (const double value : row->objectives) fields.push_back(field_of_value(Value(value)));
    fields.insert(fields.end(), {row->job_id, row->status, field_of_value(Value(row->submitted)),
                                 field_of_value(Value(row->gathered))});
    for (const std::string& name : more) {
      const auto found = row->metadata.find(name);
      fields.push_back(found == row->metadata.end() ? "" : field_of_value(found->second));
    }
    out += csv_line(fields);
  }
  return out;
}

}  // namespace kolo::hps

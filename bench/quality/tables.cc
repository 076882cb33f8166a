// Tables of the format kolo-hpo-table-1: every configuration of a finite space with its objective.
#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "quality/csv.h"
#include "quality/problem.h"

namespace bench {
namespace {

using kolo::ErrorCode;
using kolo::Json;
using kolo::json_field;
using kolo::throw_error;

search::Value choice_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return value.get<double>();
}

Problem read_table(const std::string& path, const Json& header) {
  Problem problem;
  problem.name = std::filesystem::path(path).stem();
  problem.is_table = true;
  problem.checksum = json_field<std::string>(header, "csv_sha256_uncompressed", path);
  problem.optimum = json_field<double>(header, "optimum", path);
  if (json_field<std::string>(header, "direction", path) == "maximize")
    problem.direction = search::Direction::maximize;

  search::Space::Builder builder;
  std::vector<std::string> names;
  std::vector<std::size_t> sizes;
  std::size_t rows = 1;
  for (const Json& parameter : header.at("parameters")) {
    auto name = json_field<std::string>(parameter, "name", path);
    bool ordinal = json_field<std::string>(parameter, "type", path) == "ordinal";
    std::vector<search::Value> values;
    for (const Json& value : parameter.at("values")) values.push_back(choice_value(value));
    names.push_back(name);
    sizes.push_back(values.size());
    rows *= values.size();
    problem.parameters.push_back(
        {{"name", name}, {"type", ordinal ? "ordinal" : "categorical"}, {"count", values.size()}});
    builder.add(name, ordinal ? search::ordinal(values) : search::choice(values));
  }
  problem.space = builder.build();

  auto folder = std::filesystem::path(path).parent_path();
  auto data = (folder / json_field<std::string>(header, "csv", path)).string();
  auto columns = json_field<std::vector<std::string>>(header, "columns", path);
  auto table = read_csv_columns(data, columns.size() - 1);
  if (table.size() != rows)
    throw_error(ErrorCode::corruption, "{} has {} rows, its header {} speaks of {}", data,
                table.size(), path, rows);
  std::vector<double> objective;
  for (const auto& row : table) objective.push_back(row.at(0));

  // The space has its parameters by name, the table in its own order.
  std::vector<std::size_t> places;
  for (const auto& name : names) places.push_back(problem.space->index_of(name));
  problem.evaluate = [objective, places, sizes](const search::Point& point) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < places.size(); ++i)
      row = row * sizes[i] + static_cast<std::size_t>(point[places[i]]);
    return objective[row];
  };
  return problem;
}

}  // namespace

std::vector<Problem> read_tables(const std::string& folder) {
  std::vector<std::string> headers;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error))
    if (file.path().extension() == ".json") headers.push_back(file.path());
  if (error) throw_error(ErrorCode::not_found, "cannot read the folder {}", folder);
  std::sort(headers.begin(), headers.end());
  std::vector<Problem> problems;
  for (const auto& path : headers) {
    Json header = kolo::parse_json(kolo::read_file(path), path);
    if (header.value("format", "") == "kolo-hpo-table-1")
      problems.push_back(read_table(path, header));
  }
  return problems;
}

}  // namespace bench

// Every column becomes a vector of numbers with not-a-number for what is absent or failed, so that
// all columns are drawn by the same code. A curve of the best so far is made in one pass over the
// rows in the order of the table. The y axis is cut at the worst tenth only if the values below it
// would take much of the height; the subtitle says so. All searches share one time unit, chosen by
// the longest, because they share one axis.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/errors.h"
#include "base/registry.h"
#include "hps/analytics/searches.h"
#include "hps/analytics/top_rows.h"
#include "kolo/search/analysis.h"

namespace kolo::hps {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> columns_of(const ResultsTable& table) {
  std::vector<std::string> names{"evaluations", "time", "seconds"};
  for (std::size_t i = 0; i < table.objectives; ++i)
    names.push_back(objective_column(i, table.objectives));
  for (const std::string& name : table.parameters) names.push_back("p:" + name);
  for (const std::string& name : table.metadata) names.push_back("m:" + name);
  return names;
}

double number_of(const Value* value) {
  if (value == nullptr) return kNothing;
  if (value->is_bool()) return value->as_bool() ? 1 : 0;
  return value->is_number() ? value->as_number() : kNothing;
}

const Value* parameter_of(const ResultRow& row, std::string_view name) {
  const auto& dict = row.parameters.as_dict();
  const auto found = dict.find(name);
  return found == dict.end() ? nullptr : &found->second;
}

/// Which objective a column is; "objective" is the first of several.
std::optional<std::size_t> objective_of(const ResultsTable& table, std::string_view column) {
  if (column == "objective") return 0;
  for (std::size_t i = 0; i < table.objectives; ++i)
    if (column == objective_column(i, table.objectives)) return i;
  return std::nullopt;
}

/// One column as numbers, not-a-number where there is none. Throws not_found.
std::vector<double> column_of(const SearchResults& search, const std::string& column) {
  const ResultsTable& table = search.table;
  std::vector<double> numbers;
  const auto each = [&](const auto& number) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) numbers.push_back(number(table.rows[i], i));
    return numbers;
  };
  if (column == "evaluations")
    return each([](const ResultRow&, std::size_t i) { return static_cast<double>(i + 1); });
  if (column == "time" || column == "elapsed_sec")
    return each([](const ResultRow& row, std::size_t) { return row.gathered; });
  if (column == "seconds")
    return each([](const ResultRow& row, std::size_t) { return row.gathered - row.submitted; });
  if (const auto objective = objective_of(table, column))
    return each([&](const ResultRow& row, std::size_t) {
      return row.failed() ? kNothing : row.objectives[*objective];
    });
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string bare =
      column.starts_with("p:") || column.starts_with("m:") ? column.substr(2) : column;
  if (!column.starts_with("m:") && has(table.parameters, bare)) {
    each([&](const ResultRow& row, std::size_t) { return number_of(parameter_of(row, bare)); });
  } else if (!column.starts_with("p:") && has(table.metadata, bare)) {
    each([&](const ResultRow& row, std::size_t) {
      const auto found = row.metadata.find(bare);
      return number_of(found == row.metadata.end() ? nullptr : &found->second);
    });
  } else {
    const auto known = columns_of(table);
    throw Error(ErrorCode::not_found,
                search.name + ": " + unknown_name("column", column, {known.begin(), known.end()}));
  }
  if (!numbers.empty() &&
      std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isnan(number); }))
    throw_error(ErrorCode::invalid_argument, "{}: column '{}' has no numbers, it cannot be drawn",
                search.name, column);
  return numbers;
}

/// Seconds become minutes or hours when there are many.
struct TimeUnit {
  double seconds = 1;
  const char* name = "s";
};
TimeUnit unit_of(double longest) {
  if (longest > 36 * 3600.0) return {3600, "hours"};
  if (longest > 2 * 3600.0) return {60, "minutes"};
  return {};
}

/// The few very bad results of every search would press the rest into a line: the picture goes down
/// to the worse of the tenth part, and the best has room above it.
void show_the_better_part(Plot& plot, std::vector<double> values, bool best_is_least) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.size() < 20 || plot.log_y) return;
  if (best_is_least)
    for (double& value : values) value = -value;
  std::sort(values.begin(), values.end());
  const double best = values.back(), cut = values[values.size() / 10];
  const double height = best - cut;
  if (height <= 0 || cut - values.front() < 0.75 * height) return;
  const double low = cut - 0.05 * height, high = best + 0.06 * height;
  plot.y_low = best_is_least ? -high : low;
  plot.y_high = best_is_least ? -low : high;
}

/// Where evaluations failed, along x.
PlotSeries failures_of(const SearchResults& search, const std::vector<double>& xs, int color,
                       bool named) {
  PlotSeries failed{
      .name = named ? "failed" : "", .style = PlotSeries::Style::failures, .color = color};
  for (std::size_t j = 0; j < xs.size(); ++j)
    if (search.table.rows[j].failed()) failed.points.emplace_back(xs[j], 0);
  return failed;
}

/// One objective against another: a line through the evaluations that no other is better than.
PlotSeries front_of(const SearchResults& search, std::size_t x, std::size_t y, int color,
                    bool named) {
  using search::Direction;
  const auto direction = [&](std::size_t objective) {
    return search.table.minimizes(objective) ? Direction::minimize : Direction::maximize;
  };
  std::vector<std::vector<double>> pairs;
  for (const ResultRow& row : search.table.rows)
    if (!row.failed()) pairs.push_back({row.objectives[x], row.objectives[y]});
  const std::vector<Direction> directions{direction(x), direction(y)};
  PlotSeries front{.name = named ? search.name : "Pareto front", .color = color};
  for (const std::size_t place : search::pareto_front(pairs, directions))
    front.points.emplace_back(pairs[place][0], pairs[place][1]);
  std::sort(front.points.begin(), front.points.end());
  return front;
}

}  // namespace

Plot plot_searches(const std::vector<SearchResults>& searches, const PlotQuestion& question) {
  Plot plot;
  plot.title = question.title;
  plot.log_x = question.log_x;
  plot.log_y = question.log_y;
  const bool along = question.x == "evaluations" || question.x == "time";
  double longest = 0;
  if (question.x == "time")
    for (const SearchResults& search : searches)
      for (const ResultRow& row : search.table.rows) longest = std::max(longest, row.gathered);
  const TimeUnit unit = unit_of(longest);

  std::vector<double> all;
  bool all_best_is_least = false;
  std::size_t failures = 0, evaluations = 0;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    const SearchResults& search = searches[i];
    std::vector<double> xs = column_of(search, question.x), ys = column_of(search, question.y);
    for (double& x : xs) x /= unit.seconds;
    const auto objective = objective_of(search.table, question.y);
    const bool minimizes = objective && search.table.minimizes(*objective);
    if (question.optimum)
      for (double& y : ys) y = minimizes ? y - *question.optimum : *question.optimum - y;
    const bool best_is_least = question.optimum || minimizes;
    all_best_is_least = all_best_is_least || best_is_least;
    const bool curve = along && objective;
    const int color = static_cast<int>(i);
    const std::string name = searches.size() > 1 ? search.name : curve ? "evaluations" : "";
    PlotSeries points{.name = curve && searches.size() > 1 ? "" : name,
                      .style = PlotSeries::Style::points,
                      .color = color};
    PlotSeries best{.name = searches.size() > 1 ? search.name : "best so far",
                    .style = PlotSeries::Style::steps,
                    .color = color};
    double so_far = kNothing;
    for (std::size_t j = 0; j < xs.size(); ++j) {
      points.points.emplace_back(xs[j], ys[j]);
      if (std::isfinite(ys[j]) && !(best_is_least ? ys[j] >= so_far : ys[j] <= so_far))
        so_far = ys[j];
      best.points.emplace_back(xs[j], so_far);
    }
    all.insert(all.end(), ys.begin(), ys.end());
    evaluations += search.table.rows.size();
    for (const ResultRow& row : search.table.rows) failures += row.failed() ? 1 : 0;
    plot.series.push_back(std::move(points));
    if (curve) plot.series.push_back(std::move(best));
    const bool several = searches.size() > 1;
    const auto across = objective_of(search.table, question.x);
    if (across && objective && *across != *objective && !question.optimum)
      plot.series.push_back(front_of(search, *across, *objective, several ? color : 1, several));
    if (objective && !across)
      if (auto failed = failures_of(search, xs, several ? color : 1, !several);
          !failed.points.empty())
        plot.series.push_back(std::move(failed));
  }
  if (along) show_the_better_part(plot, all, all_best_is_least);
  plot.x_label = question.x == "time" ? fmt::format("time ({})", unit.name) : question.x;
  plot.y_label = question.optimum
                     ? fmt::format("distance of {} from {}", question.y, *question.optimum)
                     : question.y;
  plot.subtitle = fmt::format(
      "{} evaluations{}{}", evaluations, failures > 0 ? fmt::format(", {} failed", failures) : "",
      plot.y_high > plot.y_low ? "; triangles at the edge: worse than shown" : "");
  return plot;
}

Plot plot_workload(const Workload& workload, int workers, const std::string& title) {
  Plot plot;
  plot.title = title;
  plot.y_label = "jobs running";
  plot.y_from_zero = true;
  const TimeUnit unit = unit_of(workload.seconds());
  plot.x_label = fmt::format("time ({})", unit.name);
  PlotSeries running{.name = "running", .style = PlotSeries::Style::steps, .filled = true};
  const double begin = workload.timestamps.empty() ? 0 : workload.timestamps.front();
  for (std::size_t i = 0; i < workload.timestamps.size(); ++i)
    running.points.emplace_back((workload.timestamps[i] - begin) / unit.seconds,
                                workload.num_jobs_running[i]);
  plot.subtitle = fmt::format("{:.2f} on average", workload.mean());
  plot.series.push_back(std::move(running));
  if (workers > 0) {
    plot.subtitle +=
        fmt::format(" of {}: {:.1f} % used", workers, 100 * workload.utilisation(workers));
    const auto height = static_cast<double>(workers);
    plot.series.push_back({.name = "workers",
                           .points = {{0, height}, {workload.seconds() / unit.seconds, height}},
                           .color = 1,
                           .dashed = true});
  }
  return plot;
}

}  // namespace kolo::hps

#include "tune/output/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/text_table.h"
#include "base/utf8.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/shown_config.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kBarWidth = 30, kShortestBar = 10;

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string short_value(const Value& value) {
  if (value.is_number() && !value.is_integer()) return short_number(value.as_number());
  return value.is_string() ? value.as_string() : value.to_string();
}

/// What is left, if it goes on as it did; none at the beginning or without a plan.
std::optional<double> time_left(const StudyView& view) {
  const auto done = done_of(view);
  if (!view.total || done == 0 || *view.total <= done) return std::nullopt;
  return view.elapsed / static_cast<double>(done) * static_cast<double>(*view.total - done);
}

std::string counts_text(const StudyView& view) {
  std::string text = fmt::format("{}", done_of(view));
  if (view.total) text += fmt::format("/{}", *view.total);
  text += " trials";
  constexpr std::pair<TrialStatus, const char*> kNamed[] = {{TrialStatus::running, "running"},
                                                            {TrialStatus::paused, "paused"},
                                                            {TrialStatus::pending, "pending"},
                                                            {TrialStatus::error, "failed"}};
  for (const auto& [status, name] : kNamed)
    if (const auto count = view.counts[static_cast<int>(status)]; count > 0)
      text += fmt::format(", {} {}", count, name);
  return text;
}

std::string best_text(const StudyView& view) {
  if (!view.best || view.objectives.empty()) return {};
  const std::string& metric = view.objectives.front().metric;
  const Value* value = view.best->last_result.find_path(metric);
  std::string text = fmt::format("best {} {} (trial {}", metric,
                                 value != nullptr ? short_value(*value) : "?", view.best->number);
  for (const auto& [key, item] : flat_config(view.best->config))
    text += fmt::format(", {}={}", key, short_value(item));
  return text + ")";
}

/// Time, resources and reports, with a bar before them where there is room for one.
std::string progress_text(const StudyView& view, std::size_t width) {
  std::string rest = clock_text(view.elapsed);
  if (const auto left = time_left(view)) rest += fmt::format(", about {} left", clock_text(*left));
  rest +=
      fmt::format(", {}, {} report{}", view.resources, view.reports, view.reports == 1 ? "" : "s");
  if (!view.total || *view.total <= 0) return rest;
  const double share =
      std::min(1.0, static_cast<double>(done_of(view)) / static_cast<double>(*view.total));
  const std::string text = fmt::format("{:3.0f} %  {}", share * 100, rest);
  const std::size_t taken = letters_of(text) + 3;
  if (taken + kShortestBar > width) return text;
  const std::size_t bar = std::min(kBarWidth, width - taken);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(bar));
  return fmt::format("[{}{}] {}", std::string(full, '#'), std::string(bar - full, '-'), text);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A line for the names of the columns, and one for each of the first trials.
std::vector<std::string> trial_lines(const StudyView& view, std::size_t width, std::size_t count) {
  std::vector<std::vector<std::string>> rows;
  auto& header = rows.emplace_back();
  header = {"trial", "status", "iter", "time (s)"};
  for (const auto& objective : view.objectives) header.push_back(objective.metric);
  std::vector<std::string> parameters;
  for (const auto& [key, value] : flat_config(view.shown.front().config)) parameters.push_back(key);
  header.insert(header.end(), parameters.begin(), parameters.end());
  const auto cell = [](const Value* value) { return value != nullptr ? short_value(*value) : ""; };
  for (std::size_t i = 0; i < count; ++i) {
    const auto& trial = view.shown[i];
    auto& row = rows.emplace_back();
    row = {trial.id, std::string(to_string(trial.status)) + (trial.stopped ? " (early)" : ""),
           std::to_string(trial.iteration), fmt::format("{:.1f}", trial.seconds)};
    for (const auto& objective : view.objectives)
      row.push_back(cell(trial.last_result.find_path(objective.metric)));
    const auto config = flat_config(trial.config);
    for (const auto& path : parameters) {
      const auto found = config.find(path);
      row.push_back(cell(found != config.end() ? &found->second : nullptr));
    }
  }
  return lines_of(text_table(rows, {.width = width, .indent = 1}));
}

}  // namespace

std::int64_t done_of(const StudyView& view) {
  return view.counts[static_cast<int>(TrialStatus::terminated)] +
         view.counts[static_cast<int>(TrialStatus::error)];
}

std::string draw_line(const StudyView& view) {
  std::string text =
      fmt::format("{}: {}, {}", view.name, counts_text(view), clock_text(view.elapsed));
  if (const auto left = time_left(view)) text += fmt::format(", about {} left", clock_text(*left));
  if (const std::string best = best_text(view); !best.empty()) text += ", " + best;
  return printable(text);
}

std::vector<std::string> draw_table(const StudyView& view, std::size_t width, std::size_t height) {
  std::vector<std::string> lines{fmt::format("study {}: {}", view.name, counts_text(view)),
                                 progress_text(view, width)};
  if (std::string best = best_text(view); !best.empty()) lines.push_back(std::move(best));
  if (view.scheduler != "fifo")
    for (auto& line : lines_of(view.scheduler))
      if (lines.size() < height / 2) lines.push_back(std::move(line));
  for (auto& line : lines) line = shortened(printable(line), width);

  // Beside the trials there are a header and, perhaps, a line about those that are left out.
  const std::size_t room = height > lines.size() + 2 ? height - lines.size() - 2 : 0;
  const std::size_t count = std::min(room, view.shown.size());
  if (count > 0)
    for (auto& line : trial_lines(view, width, count)) lines.push_back(std::move(line));
  const auto hidden = view.created - static_cast<std::int64_t>(count);
  if (count > 0 && hidden > 0) lines.push_back(shortened(fmt::format(" … {} more", hidden), width));
  if (lines.size() > height) lines.resize(height);
  return lines;
}

}  // namespace kolo::tune

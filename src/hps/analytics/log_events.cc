#include "hps/analytics/log_events.h"

#include <algorithm>
#include <optional>

#include "base/errors.h"

namespace kolo::hps {
namespace {

constexpr std::string_view kArrow = ">>>";  // before the JSON in DeepHyper's lines

std::optional<Json> read_event(std::string_view line) {
  Json json = try_parse_json(line).value_or(Json());
  if (!json.is_object()) return std::nullopt;
  // DeepHyper calls it type.
  if (!json.contains("event") && json.contains("type")) {
    json["event"] = json["type"];
    json.erase("type");
  }
  if (!json.contains("event") || !json["event"].is_string()) return std::nullopt;
  return json;
}

/// Of several objectives the first counts.
std::optional<double> objective_of(const Json& event) {
  const auto found = event.find("objective");
  if (found == event.end()) return std::nullopt;
  const Json& value = found->is_array() && !found->empty() ? found->front() : *found;
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

}  // namespace

LogEvents read_log(std::string_view text, std::string_view origin) {
  LogEvents log;
  const bool arrows = text.find(kArrow) != std::string_view::npos;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::size_t arrow = arrows ? line.find(kArrow) : std::string_view::npos;
    if (arrow != std::string_view::npos)
      line.remove_prefix(arrow + kArrow.size());
    else if (arrows && line.find_first_not_of(" \t") != line.find('{'))
      continue;  // plain talk between the events
    if (auto event = read_event(line))
      log.events.push_back(*std::move(event));
    else
      log.damaged.push_back(number);
  }
  if (log.events.empty() && !log.damaged.empty())
    throw_error(ErrorCode::corruption,
                "{}: none of its {} lines is an event; a log of a search has one JSON object with "
                "\"event\" per line",
                origin, log.damaged.size());
  return log;
}

Json log_document(const LogEvents& log) {
  Json summary{{"events", log.events.size()}, {"by_event", Json::object()}};
  std::optional<double> first, last, best;
  Json best_event;
  std::size_t evaluations = 0, failures = 0;
  for (const Json& event : log.events) {
    Json& count = summary["by_event"][event["event"].get<std::string>()];
    count = count.is_null() ? 1 : count.get<std::size_t>() + 1;
    if (const auto time = event.find("time"); time != event.end() && time->is_number()) {
      first = std::min(first.value_or(time->get<double>()), time->get<double>());
      last = std::max(last.value_or(time->get<double>()), time->get<double>());
    }
    if (event["event"] != "result") continue;
    ++evaluations;
    const auto objective = objective_of(event);
    if (!objective) {
      ++failures;
    } else if (!best || *objective > *best) {
      best = objective;
      best_event = event;
    }
  }
  if (first) {
    summary["first_time"] = *first;
    summary["last_time"] = *last;
    summary["seconds"] = *last - *first;
  }
  summary["evaluations"] = evaluations;
  summary["failures"] = failures;
  if (best) summary["best"] = best_event;
  if (!log.damaged.empty()) summary["damaged_lines"] = log.damaged;
  return {{"events", log.events}, {"summary", std::move(summary)}};
}

}  // namespace kolo::hps

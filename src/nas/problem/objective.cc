#include "nas/problem/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::nas {

Objective Objective::parse(std::string_view text) {
  Objective objective;
  std::string_view rest = text;
  if (rest.starts_with('-')) {
    objective.negated = true;
    rest.remove_prefix(1);
  }
  if (const auto suffix = rest.rfind("__"); suffix != std::string_view::npos) {
    const auto word = rest.substr(suffix + 2);
    if (word == "min") {
      objective.take = Take::min;
    } else if (word == "max") {
      objective.take = Take::max;
    } else if (word == "last") {
      objective.last_epoch_only = true;
    } else {
      throw_error(ErrorCode::invalid_argument,
                  "objective '{}': '__{}' is unknown; known: __min, __max, __last", text, word);
    }
    rest = rest.substr(0, suffix);
  }
  if (rest.empty() || rest == "val_")
    throw_error(ErrorCode::invalid_argument, "objective '{}' does not name a metric", text);
  objective.metric = rest;
  return objective;
}

void Objective::check(const std::vector<std::string>& metrics) const {
  if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) return;
  throw_error(ErrorCode::not_found, "the objective names what the training does not measure: {}",
              unknown_name("metric", metric, {metrics.begin(), metrics.end()}));
}

double Objective::value_in(const History& history) const {
  const auto found = history.find(metric);
  if (found == history.end()) {
    std::string known;
    for (const auto& [name, values] : history) known += (known.empty() ? "" : ", ") + name;
    throw_error(ErrorCode::not_found, "the history has no metric '{}'; it has: {}", metric,
                known.empty() ? "nothing" : known);
  }
  const auto& values = found->second;
  if (values.empty() ||
      std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); }))
    return std::numeric_limits<double>::quiet_NaN();
  double value = values.back();
  if (take == Take::min) value = *std::min_element(values.begin(), values.end());
  if (take == Take::max) value = *std::max_element(values.begin(), values.end());
  return negated ? -value : value;
}

}  // namespace kolo::nas

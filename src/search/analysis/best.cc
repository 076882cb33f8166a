// The best trial, and how fast a search came near the optimum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/metric_order.h"
#include "base/registry.h"
#include "kolo/search/analysis.h"

namespace kolo::search {
namespace {

double mean_of_last(std::span<const double> values, std::size_t count) {
  auto last = values.last(std::min(count, values.size()));
  return std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
}

bool is_better(double a, double b, Direction direction) {
  return is_better_metric(a, b, direction == Direction::minimize);
}

}  // namespace

Scope parse_scope(std::string_view name) {
  constexpr std::pair<std::string_view, Scope> kScopes[] = {
      {"last", Scope::last},
      {"all", Scope::all},
      {"avg", Scope::avg},
      {"last-5-avg", Scope::last_5_avg},
      {"last-10-avg", Scope::last_10_avg},
  };
  std::vector<std::string_view> known;
  for (const auto& [known_name, scope] : kScopes) {
    if (name == known_name) return scope;
    known.push_back(known_name);
  }
  throw_unknown_name("scope", name, known);
}

std::optional<double> value_in_scope(std::span<const double> values, Direction direction,
                                     Scope scope) {
  if (values.empty()) return std::nullopt;
  switch (scope) {
    case Scope::last: return values.back();
    case Scope::avg: return mean_of_last(values, values.size());
    case Scope::last_5_avg: return mean_of_last(values, 5);
    case Scope::last_10_avg: return mean_of_last(values, 10);
    case Scope::all: break;
  }
  double best = std::nan("");
  for (double value : values)
    if (is_better(value, best, direction)) best = value;
  return best;
}

std::optional<TrialId> best_trial(std::span<const Curve> curves, Direction direction, Scope scope,
                                  bool filter_nan_and_inf) {
  std::optional<TrialId> best;
  double best_value = 0;
  for (const Curve& curve : curves) {
    auto value = value_in_scope(curve.values, direction, scope);
    if (!value || std::isnan(*value) || (filter_nan_and_inf && std::isinf(*value))) continue;
    if (best && !is_better(*value, best_value, direction)) continue;
    best = curve.trial;
    best_value = *value;
  }
  return best;
}

std::vector<double> regret_curve(std::span<const double> values, Direction direction,
                                 double optimum) {
  std::vector<double> regret;
  regret.reserve(values.size());
  double least = std::numeric_limits<double>::infinity();
  for (double value : values) {
    double now = direction == Direction::minimize ? value - optimum : optimum - value;
    if (now < least) least = now;
    regret.push_back(least);
  }
  return regret;
}

MeanCurve mean_curve(std::span<const std::vector<double>> curves) {
  MeanCurve result;
  if (curves.empty()) return result;
  std::size_t length = curves[0].size();
  for (const auto& curve : curves) length = std::min(length, curve.size());
  auto n = static_cast<double>(curves.size());
  for (std::size_t i = 0; i < length; ++i) {
    double sum = 0;
    for (const auto& curve : curves) sum += curve[i];
    double mean = sum / n;
    double squares = 0;
    for (const auto& curve : curves) squares += (curve[i] - mean) * (curve[i] - mean);
    result.mean.push_back(mean);
    result.standard_error.push_back(n > 1 ? std::sqrt(squares / (n - 1) / n) : 0);
  }
  return result;
}

}  // namespace kolo::search

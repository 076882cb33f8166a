// Metrics by name. Each is a function of sums over samples, so that it is exact over any number of
// batches and ranks: R² of a whole set is not the mean of its batches' R².
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

struct Metric {
  std::string name{};
  /// float64, of the same shape whatever the number of samples; added up over batches and ranks.
  std::function<torch::Tensor(const torch::Tensor& outputs, const torch::Tensor& targets)> sums{};
  std::function<double(const torch::Tensor& sums)> value{};
};

struct MetricParts {
  torch::Tensor (*sums)(const torch::Tensor& outputs, const torch::Tensor& targets);
  double (*value)(const torch::Tensor& sums);
};
extern const Registry<MetricParts> kMetrics;

/// Keras' names are understood; the metric keeps the name that was given. Throws not_found, listing
/// the known ones.
Metric make_metric(std::string_view name);
/// A mean over samples.
Metric make_metric(std::string name, MetricFunction function);

}  // namespace kolo::nas

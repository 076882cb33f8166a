// A metric is a pair of functions: one turns a batch into a tensor of sums, one turns the total of
// these into the value. Sums are float64 and additive, so that they can be added over batches and
// ranks in any grouping.
#include "nas/problem/metrics.h"

#include <cmath>
#include <utility>

#include "nas/problem/aliases.h"

namespace kolo::nas {
namespace {

using torch::Tensor;

/// Samples x numbers, in double precision.
Tensor rows(const Tensor& tensor) {
  return tensor.to(torch::kFloat64).reshape({tensor.size(0), -1});
}

Tensor pair(const Tensor& sum, std::int64_t count) {
  return torch::stack(
      {sum.to(torch::kFloat64), torch::full({}, static_cast<double>(count), torch::kFloat64)});
}

double ratio(const Tensor& sums) { return sums[0].item<double>() / sums[1].item<double>(); }
double root(const Tensor& sums) { return std::sqrt(ratio(sums)); }

Tensor squares(const Tensor& outputs, const Tensor& targets) {
  return pair((rows(outputs) - rows(targets)).square().sum(), targets.numel());
}

Tensor distances(const Tensor& outputs, const Tensor& targets) {
  return pair((rows(outputs) - rows(targets)).abs().sum(), targets.numel());
}

Tensor hits(const Tensor& outputs, const Tensor& targets) {
  const bool truths = outputs.dim() == 2 && outputs.size(1) == 1;
  if (truths)
    return pair((outputs > 0).flatten().eq(targets.flatten() > 0.5).sum(), targets.size(0));
  const Tensor wanted = targets.is_floating_point() ? targets.argmax(-1) : targets;
  return pair(outputs.argmax(-1).eq(wanted.view({-1})).sum(), targets.size(0));
}

/// For each number of the output: count, Σ y, Σ y², Σ (y - p)².
Tensor variances(const Tensor& outputs, const Tensor& targets) {
  const Tensor y = rows(targets), p = rows(outputs);
  return torch::stack({torch::full({y.size(1)}, static_cast<double>(y.size(0)), torch::kFloat64),
                       y.sum(0), y.square().sum(0), (y - p).square().sum(0)});
}

/// Mean over the numbers of the output of 1 - SS_res/SS_tot; a target that never changes is
/// answered fully (1) or not at all (0).
double r2(const Tensor& sums) {
  double total = 0;
  const std::int64_t columns = sums.size(1);
  const auto at = sums.accessor<double, 2>();
  for (std::int64_t i = 0; i < columns; ++i) {
    const double spread = at[2][i] - at[1][i] * at[1][i] / at[0][i], error = at[3][i];
    // What is left of equal numbers after the subtraction is rounding.
    const bool constant = spread <= 1e-13 * std::abs(at[2][i]);
    total += constant ? (error == 0 ? 1.0 : error * 0.0) : 1 - error / spread;
  }
  return total / static_cast<double>(columns);
}

// As Keras' AUC: at 200 thresholds of the probability, evenly spaced, the ends a little outside.
constexpr std::int64_t kThresholds = 200;

/// For each threshold: true positives and false positives; and in the last column all positives and
/// all negatives.
Tensor confusions(const Tensor& outputs, const Tensor& targets) {
  const bool scores_of_two = outputs.dim() == 2 && outputs.size(1) == 2;
  const Tensor probability =
      scores_of_two ? outputs.softmax(-1).select(1, 1).flatten() : outputs.sigmoid().flatten();
  Tensor truth = targets.flatten().to(torch::kFloat64);
  if (scores_of_two && targets.dim() == 2) truth = targets.select(1, 1).to(torch::kFloat64);
  // The bin of a sample counts the thresholds below its probability; sums from the right are what
  // lies above each threshold.
  const Tensor bin = (probability.to(torch::kFloat64) * (kThresholds - 1))
                         .floor()
                         .clamp(0, kThresholds - 1)
                         .to(torch::kInt64);
  const auto above = [&](const Tensor& weights) {
    return torch::bincount(bin, weights, kThresholds).flip(0).cumsum(0).flip(0);
  };
  const Tensor positive = above(truth), negative = above(1 - truth);
  return torch::stack({torch::cat({positive, positive.narrow(0, 0, 1)}),
                       torch::cat({negative, negative.narrow(0, 0, 1)})});
}

/// Area under precision over recall, by the interpolation of Davis and Goadrich, "The relationship
/// between precision-recall and ROC curves", 2006, as Keras does: between two thresholds true
/// positives are linear in all positives.
double area_under_precision(const Tensor& sums) {
  const auto at = sums.accessor<double, 2>();
  const double positives = at[0][kThresholds];
  if (positives == 0) return 0;
  double area = 0;
  for (std::int64_t i = 0; i < kThresholds; ++i) {
    const bool last = i + 1 == kThresholds;
    const double hits_here = at[0][i], said_here = at[0][i] + at[1][i];
    const double hits_next = last ? 0 : at[0][i + 1];
    const double said_next = last ? 0 : at[0][i + 1] + at[1][i + 1];
    const double more_hits = hits_here - hits_next, more_said = said_here - said_next;
    if (more_said <= 0) continue;
    const double slope = more_hits / more_said;
    const double intercept = hits_next - slope * said_next;
    const double grown = said_next > 0 ? std::log(said_here / said_next) : 0;
    area += slope * (more_hits + intercept * grown) / positives;
  }
  return area;
}

double area_under_roc(const Tensor& sums) {
  const auto at = sums.accessor<double, 2>();
  const double positives = at[0][kThresholds], negatives = at[1][kThresholds];
  if (positives == 0 || negatives == 0) return 0;
  double area = 0;
  for (std::int64_t i = 0; i < kThresholds; ++i) {
    const bool last = i + 1 == kThresholds;
    const double hits_next = last ? 0 : at[0][i + 1], misses_next = last ? 0 : at[1][i + 1];
    area += (at[1][i] - misses_next) / negatives * (at[0][i] + hits_next) / (2 * positives);
  }
  return area;
}

constexpr Entry<MetricParts> kMetricTable[] = {
    {"r2", "coefficient of determination, mean over the numbers of an output", {variances, r2}},
    {"mse", "mean of squared differences", {squares, ratio}},
    {"rmse", "root of mse", {squares, root}},
    {"mae", "mean of absolute differences", {distances, ratio}},
    {"acc", "share of the samples whose largest score (or whose sign) is right", {hits, ratio}},
    {"auc_pr", "area under precision over recall, two classes", {confusions, area_under_precision}},
    {"auc_roc", "area under the ROC curve, two classes", {confusions, area_under_roc}},
};

constexpr Alias kMetricAliases[] = {
    {"mean_squared_error", "mse"},
    {"mean_absolute_error", "mae"},
    {"root_mean_squared_error", "rmse"},
    {"accuracy", "acc"},
    {"categorical_accuracy", "acc"},
    {"sparse_categorical_accuracy", "acc"},
    {"binary_accuracy", "acc"},
    {"aucpr", "auc_pr"},
    {"auc-pr", "auc_pr"},
    {"auroc", "auc_roc"},
    {"auc", "auc_roc"},
};

}  // namespace

constinit const Registry<MetricParts> kMetrics{"metric", kMetricTable};

Metric make_metric(std::string_view name) {
  const MetricParts parts = kMetrics.at(without_alias(name, kMetricAliases)).make;
  return {std::string(name), parts.sums, parts.value};
}

Metric make_metric(std::string name, MetricFunction function) {
  return {std::move(name),
          [function = std::move(function)](const Tensor& outputs, const Tensor& targets) {
            const double count = static_cast<double>(targets.size(0));
            return torch::tensor({function(outputs, targets).item<double>() * count, count},
                                 torch::kFloat64);
          },
          ratio};
}

}  // namespace kolo::nas

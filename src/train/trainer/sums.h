// What the Trainer adds up over samples, to be divided at the end of the epoch.
#pragma once

#include <algorithm>

#include "kolo/torch/trainer.h"

namespace kolo {

struct Trainer::Sums {
  double samples = 0, loss = 0;
  std::vector<double> metrics;

  explicit Sums(std::size_t metric_count) : metrics(metric_count) {}

  /// All of them in a row, and a row added.
  [[nodiscard]] torch::Tensor row() const {
    std::vector<double> all{samples, loss};
    all.insert(all.end(), metrics.begin(), metrics.end());
    return torch::tensor(all, torch::kFloat64);
  }
  void add(const torch::Tensor& row) {
    samples += row[0].item<double>();
    loss += row[1].item<double>();
    for (std::size_t i = 0; i < metrics.size(); ++i)
      metrics[i] += row[static_cast<std::int64_t>(i) + 2].item<double>();
  }

  Metrics means(const std::vector<std::pair<std::string, BatchMetric>>& known,
                const std::string& prefix) const {
    Metrics all;
    const double count = std::max(samples, 1.0);
    all[prefix + "loss"] = loss / count;
    for (std::size_t i = 0; i < known.size(); ++i)
      all[prefix + known[i].first] = metrics[i] / count;
    return all;
  }
};

}  // namespace kolo

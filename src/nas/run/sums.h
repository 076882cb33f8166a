// Losses and metrics of an epoch as sums over samples, divided at its end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nas/problem/metrics.h"
#include "nas/run/ranks.h"

namespace kolo::nas {

/// One epoch's, or one validation's. `metrics` (by output) must outlive it.
class Sums {
 public:
  Sums(std::size_t outputs, const std::vector<std::vector<Metric>>& metrics);

  /// `loss` is the sum over `samples` samples.
  void add_losses(std::size_t output, const torch::Tensor& loss, double samples);
  void add_metrics(std::size_t output, const torch::Tensor& outputs, const torch::Tensor& targets);

  /// Whether a loss is not finite. Reads the tensors.
  [[nodiscard]] bool is_not_a_number() const;
  /// Of all ranks, each of which has added something. Collective.
  void add_up(const Ranks& ranks);
  /// "loss" (weighted), the metrics, and with several outputs each one's loss; names of metrics
  /// have the output in front then.
  [[nodiscard]] std::map<std::string, double> values(const std::vector<double>& weights) const;

 private:
  const std::vector<std::vector<Metric>>& metrics_;
  torch::Tensor losses_;  // sum and samples, by output
  std::vector<std::vector<torch::Tensor>> sums_;
};

}  // namespace kolo::nas

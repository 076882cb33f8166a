#include "nas/run/sums.h"

namespace kolo::nas {

using torch::Tensor;

Sums::Sums(std::size_t outputs, const std::vector<std::vector<Metric>>& metrics)
    : metrics_(metrics),
      losses_(torch::zeros({static_cast<std::int64_t>(outputs), 2}, torch::kFloat64)),
      sums_(outputs) {
  for (std::size_t i = 0; i < outputs; ++i) sums_[i].resize(metrics[i].size());
}

void Sums::add_losses(std::size_t output, const Tensor& loss, double samples) {
  const auto row = static_cast<std::int64_t>(output);
  losses_[row][0] += loss;
  losses_[row][1] += samples;
}

void Sums::add_metrics(std::size_t output, const Tensor& outputs, const Tensor& targets) {
  for (std::size_t i = 0; i < metrics_[output].size(); ++i) {
    const Tensor more = metrics_[output][i].sums(outputs, targets);
    Tensor& sum = sums_[output][i];
    sum = sum.defined() ? sum + more : more;
  }
}

bool Sums::is_not_a_number() const { return !losses_.isfinite().all().item<bool>(); }

void Sums::add_up(const Ranks& ranks) {
  if (ranks.size() == 1) return;
  ranks.add_up(losses_);
  for (auto& output : sums_)
    for (Tensor& sum : output) {
      sum = sum.contiguous();
      ranks.add_up(sum);
    }
}

std::map<std::string, double> Sums::values(const std::vector<double>& weights) const {
  std::map<std::string, double> all;
  const bool several = sums_.size() > 1;
  double total = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const double loss = losses_[row][0].item<double>() / losses_[row][1].item<double>();
    total += weights[i] * loss;
    const std::string prefix = several ? "output_" + std::to_string(i) + "_" : "";
    if (several) all[prefix + "loss"] = loss;
    for (std::size_t m = 0; m < metrics_[i].size(); ++m)
      all[prefix + metrics_[i][m].name] = metrics_[i][m].value(sums_[i][m]);
  }
  all["loss"] = total;
  return all;
}

}  // namespace kolo::nas

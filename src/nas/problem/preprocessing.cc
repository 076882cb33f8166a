#include "nas/problem/preprocessing.h"

namespace kolo::nas {
namespace {

using torch::Tensor;

/// new = (old - shift) · factor, for each number of a sample.
struct Scaling {
  Tensor shift, factor;
  [[nodiscard]] Tensor apply(const Tensor& values) const {
    return ((values.to(torch::kFloat64) - shift) * factor).to(values.scalar_type());
  }
};

/// A number that never changes is only shifted.
Tensor inverse_or_one(const Tensor& widths) {
  return torch::where(widths > 0, 1 / widths, torch::ones_like(widths));
}

Scaling fit_minmax(const Tensor& train) {
  const Tensor values = train.to(torch::kFloat64);
  const Tensor low = values.amin(0), high = values.amax(0);
  return {low, inverse_or_one(high - low)};
}

Scaling fit_standard(const Tensor& train) {
  const Tensor values = train.to(torch::kFloat64);
  return {values.mean(0), inverse_or_one(values.std(0, /*unbiased=*/false))};
}

DataSplit scale(DataSplit data, Scaling (*fit)(const Tensor&)) {
  const auto both = [&](std::vector<Tensor>& train, std::vector<Tensor>& validation) {
    for (std::size_t i = 0; i < train.size(); ++i) {
      if (!train[i].is_floating_point()) continue;
      const Scaling scaling = fit(train[i]);
      train[i] = scaling.apply(train[i]);
      validation[i] = scaling.apply(validation[i]);
    }
  };
  both(data.train.inputs, data.validation.inputs);
  both(data.train.targets, data.validation.targets);
  return data;
}

DataSplit none(DataSplit data) { return data; }
DataSplit minmax(DataSplit data) { return scale(std::move(data), fit_minmax); }
DataSplit standard(DataSplit data) { return scale(std::move(data), fit_standard); }
DataSplit minmax_standard(DataSplit data) { return standard(minmax(std::move(data))); }

constexpr Entry<NamedPreprocessing> kPreprocessingTable[] = {
    {"none", "data as they are", none},
    {"minmaxscaler", "to 0 … 1", minmax},
    {"stdscaler", "to mean 0 and deviation 1", standard},
    {"minmaxstdscaler", "to 0 … 1, then to mean 0 and deviation 1", minmax_standard},
};

}  // namespace

constinit const Registry<NamedPreprocessing> kPreprocessings{"preprocessing", kPreprocessingTable};

}  // namespace kolo::nas

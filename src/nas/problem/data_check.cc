#include "nas/problem/data_check.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::nas {
namespace {

using torch::Tensor;

Tensor in_working_type(const Tensor& tensor) {
  const auto type = torch::isFloatingType(tensor.scalar_type()) ? torch::kFloat32 : torch::kInt64;
  return tensor.detach().to(type).contiguous();
}

void check_part(Samples& part, const char* name) {
  const auto check = [&](std::vector<Tensor>& tensors, const char* kind) {
    if (tensors.empty())
      throw_error(ErrorCode::invalid_argument, "the {} data has no {}s", name, kind);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Tensor& tensor = tensors[i];
      if (!tensor.defined() || tensor.dim() == 0 || tensor.size(0) == 0)
        throw_error(ErrorCode::invalid_argument, "{} {} of the {} data has no samples", kind, i,
                    name);
      if (tensor.size(0) != part.size())
        throw_error(ErrorCode::invalid_argument,
                    "{} {} of the {} data has {} samples, but the first input has {}", kind, i,
                    name, tensor.size(0), part.size());
      tensor = in_working_type(tensor);
      if (tensor.dim() == 1 && tensor.is_floating_point()) tensor = tensor.unsqueeze(1);
    }
  };
  check(part.inputs, "input");
  check(part.targets, "target");
}

void check_same(const std::vector<Tensor>& train, const std::vector<Tensor>& validation,
                const char* kind) {
  if (train.size() != validation.size())
    throw_error(ErrorCode::invalid_argument, "there are {} {}s for training, but {} for validation",
                train.size(), kind, validation.size());
  for (std::size_t i = 0; i < train.size(); ++i)
    if (train[i].sizes().slice(1) != validation[i].sizes().slice(1) ||
        train[i].scalar_type() != validation[i].scalar_type())
      throw_error(ErrorCode::invalid_argument,
                  "{} {} has another shape or type in training than in validation", kind, i);
}

}  // namespace

DataSplit checked_data(DataSplit data) {
  check_part(data.train, "training");
  check_part(data.validation, "validation");
  check_same(data.train.inputs, data.validation.inputs, "input");
  check_same(data.train.targets, data.validation.targets, "target");
  return data;
}

bool targets_are_real(const Samples& samples) {
  return std::all_of(samples.targets.begin(), samples.targets.end(),
                     [](const Tensor& target) { return target.is_floating_point(); });
}

std::vector<Shape> input_shapes_of(const DataSplit& data) {
  std::vector<Shape> shapes;
  for (const Tensor& input : data.train.inputs) shapes.push_back(input.sizes().slice(1).vec());
  return shapes;
}

std::vector<Shape> output_shapes_of(const DataSplit& data) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < data.train.targets.size(); ++i) {
    const Tensor &train = data.train.targets[i], &validation = data.validation.targets[i];
    if (train.is_floating_point()) {
      shapes.push_back(train.sizes().slice(1).vec());
      continue;
    }
    const auto low =
        std::min(train.min().item<std::int64_t>(), validation.min().item<std::int64_t>());
    const auto high =
        std::max(train.max().item<std::int64_t>(), validation.max().item<std::int64_t>());
    if (low < 0 || train.dim() != 1)
      throw_error(ErrorCode::invalid_argument,
                  "target {} has integers, so it must be one class from 0 on for each sample, but "
                  "its lowest value is {} and it has {} dimensions",
                  i, low, train.dim());
    shapes.push_back({std::max<std::int64_t>(high + 1, 2)});
  }
  return shapes;
}

}  // namespace kolo::nas

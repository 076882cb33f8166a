#include <torch/torch.h>

#include <cstring>

#include "base/errors.h"
#include "kolo/torch/data.h"
#include "train/data/csv.h"
#include "train/data/digits_file.h"
#include "train/data/gzip.h"
#include "train/data/idx.h"
#include "train/dtype.h"

namespace kolo {
namespace {

torch::Tensor to_tensor(const train::IdxArray& array) {
  torch::Tensor tensor = torch::empty(array.shape, train::scalar_type(array.type));
  std::memcpy(tensor.data_ptr(), array.elements.data(), array.elements.size());
  return tensor;
}

torch::Tensor to_tensor(const train::CsvNumbers& table) {
  const auto rows = static_cast<int64_t>(table.rows), columns = static_cast<int64_t>(table.columns);
  torch::Tensor tensor = torch::empty({rows, columns}, torch::kFloat64);
  std::memcpy(tensor.data_ptr(), table.values.data(), table.values.size() * sizeof(double));
  return tensor;
}

/// PATH or PATH.gz, whichever is there.
std::filesystem::path packed_or_not(const std::filesystem::path& path) {
  std::filesystem::path packed = path;
  packed += ".gz";
  for (const auto& candidate : {path, packed})
    if (std::filesystem::exists(candidate)) return candidate;
  throw_error(ErrorCode::not_found,
              "{} does not exist, neither plain nor with .gz (for Fashion-MNIST install Debian's "
              "package dataset-fashion-mnist)",
              path.string());
}

// Of the 60,000 training images, as fractions of full white.
constexpr double kFashionMean = 0.2860, kFashionDeviation = 0.3530;

}  // namespace

Batch Dataset::batch(std::span<const std::size_t> samples) const {
  torch::Tensor numbers = torch::empty({static_cast<int64_t>(samples.size())}, torch::kInt64);
  auto* out = numbers.data_ptr<int64_t>();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] >= size())
      throw_error(ErrorCode::invalid_argument,
                  "batch: sample {} does not exist in a data set of {} samples", samples[i],
                  size());
    out[i] = static_cast<int64_t>(samples[i]);
  }
  return {inputs.index_select(0, numbers), targets.index_select(0, numbers)};
}

Batch Dataset::slice(std::size_t first, std::size_t count) const {
  if (first > size() || count > size() - first)
    throw_error(ErrorCode::invalid_argument,
                "slice: samples {}…{} do not all exist in a data set of {} samples", first,
                first + count, size());
  const auto from = static_cast<int64_t>(first), length = static_cast<int64_t>(count);
  return {inputs.narrow(0, from, length), targets.narrow(0, from, length)};
}

Dataset Dataset::head(std::size_t count) const {
  Batch all = slice(0, std::min(count, size()));
  return {all.inputs, all.targets};
}

torch::Tensor read_idx(const std::filesystem::path& path) {
  return to_tensor(train::parse_idx(train::read_maybe_gzipped(path), path.string()));
}

CsvTable read_csv(const std::filesystem::path& path, CsvOptions options) {
  train::CsvNumbers numbers = train::parse_csv(train::read_maybe_gzipped(path), options.separator,
                                               options.header, path.string());
  return {numbers.names, to_tensor(numbers)};
}

Dataset load_digits(Split split) {
  const std::string text =
      train::gunzip_if_needed(std::string(train::digits_file()), "digits.csv.gz");
  const torch::Tensor table = to_tensor(train::parse_csv(text, ',', false, "digits.csv.gz"));
  const torch::Tensor fifth = torch::arange(table.size(0)).remainder(5).eq(4);
  const torch::Tensor rows = table.index({split == Split::test ? fifth : fifth.logical_not()});
  constexpr int64_t kPixels = 64;
  return {(rows.narrow(1, 0, kPixels) / 16).to(torch::kFloat32),
          rows.select(1, kPixels).to(torch::kInt64)};
}

Dataset load_fashion_mnist(Split split, const std::filesystem::path& directory) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  torch::Tensor images = read_idx(packed_or_not(directory / (prefix + "-images-idx3-ubyte")));
  torch::Tensor labels = read_idx(packed_or_not(directory / (prefix + "-labels-idx1-ubyte")));
  if (images.dim() != 3 || labels.dim() != 1 || images.size(0) != labels.size(0))
    throw_error(ErrorCode::corruption,
                "{}: {} images of {} dimensions do not go with {} labels of {} dimensions",
                directory.string(), images.size(0), images.dim() - 1, labels.size(0),
                labels.dim() - 1);
  images = images.to(torch::kFloat32).div_(255).sub_(kFashionMean).div_(kFashionDeviation);
  return {images.unsqueeze(1), labels.to(torch::kInt64)};
}

}  // namespace kolo

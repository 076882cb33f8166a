#include <torch/torch.h>

#include <algorithm>

#include "base/errors.h"
#include "base/frames.h"
#include "base/json.h"
#include "kolo/torch/state.h"
#include "train/collectives/pending.h"

namespace kolo {
namespace {

std::string suffixed(const std::string& name, const char* suffix) {
  return name.empty() ? name : name + suffix;
}

torch::Tensor as_tensor(const std::string& bytes) {
  torch::Tensor tensor = torch::empty({static_cast<int64_t>(bytes.size())}, torch::kUInt8);
  std::copy(bytes.begin(), bytes.end(), tensor.data_ptr<std::uint8_t>());
  return tensor;
}

std::string as_bytes(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

/// What travels instead of JSON text that is none.
constexpr char kNotJson = '!';

std::string compact_json(const std::string& text) {
  try {
    return json_text(parse_json(text, "json"));
  } catch (const Error& error) {
    return kNotJson + error.message();
  }
}

std::string checked_json(const std::string& text, const char* what, int rank) {
  if (text.starts_with(kNotJson))
    throw_error(ErrorCode::invalid_argument, "{}: the text of rank {} is not valid JSON: {}", what,
                rank, text.substr(1));
  return text;
}

}  // namespace

std::string broadcast_object(const std::string& bytes, int root_rank, CollectiveOptions options) {
  const bool is_root = train::engine_of(options).rank() == root_rank;
  CollectiveOptions part = options;
  part.name = suffixed(options.name, ".size");
  torch::Tensor size =
      torch::tensor({is_root ? static_cast<int64_t>(bytes.size()) : 0}, torch::kInt64);
  broadcast_(size, root_rank, part);
  torch::Tensor data =
      is_root ? as_tensor(bytes) : torch::empty(size.item<int64_t>(), torch::kUInt8);
  if (data.numel() == 0) return {};
  part.name = suffixed(options.name, ".bytes");
  broadcast_(data, root_rank, part);
  return as_bytes(data);
}

std::vector<std::string> allgather_object(const std::string& bytes, CollectiveOptions options) {
  auto handle = allgather_async(as_tensor(bytes), options);
  const std::string all = as_bytes(synchronize(handle));
  std::vector<std::string> parts;
  std::size_t first = 0;
  for (int64_t size : received_splits(handle)) {
    parts.push_back(all.substr(first, static_cast<std::size_t>(size)));
    first += static_cast<std::size_t>(size);
  }
  return parts;
}

std::string broadcast_json(const std::string& text, int root_rank, CollectiveOptions options) {
  const bool is_root = train::engine_of(options).rank() == root_rank;
  return checked_json(
      broadcast_object(is_root ? compact_json(text) : "", root_rank, std::move(options)),
      "broadcast_json", root_rank);
}

std::vector<std::string> allgather_json(const std::string& text, CollectiveOptions options) {
  const std::vector<int> ranks = train::engine_of(options).ranks_of(options.process_set);
  auto all = allgather_object(compact_json(text), std::move(options));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = checked_json(all[i], "allgather_json", ranks[i]);
  return all;
}

Metrics average_metrics(const Metrics& metrics, double weight, CollectiveOptions options) {
  if (!(weight >= 0))
    throw_error(ErrorCode::invalid_argument,
                "average_metrics: the weight is {}, but cannot be negative", weight);
  ByteWriter mine;
  std::string names;
  for (const auto& [name, value] : metrics) names += name + "\n";
  mine.string(names);
  auto number = [&](double value) { mine.u64(std::bit_cast<std::uint64_t>(value)); };
  number(weight);
  for (const auto& [name, value] : metrics) number(value);

  const std::vector<std::string> all = allgather_object(mine.bytes(), options);
  const std::vector<int> ranks = train::engine_of(options).ranks_of(options.process_set);
  Metrics sums;
  double weights = 0;
  std::string expected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ByteReader reader(all[i]);
    const std::string theirs = reader.string();
    if (i == 0) expected = theirs;
    if (theirs != expected)
      throw_error(
          ErrorCode::invalid_argument,
          "average_metrics: the ranks have different metrics: rank {} has [{}], rank {} has [{}]",
          ranks[0], json_text(Json(expected)), ranks[i], json_text(Json(theirs)));
    const auto share = std::bit_cast<double>(reader.u64());
    weights += share;
    for (const auto& [name, value] : metrics)
      sums[name] += share * std::bit_cast<double>(reader.u64());
  }
  if (!metrics.empty() && weights == 0)
    throw_error(ErrorCode::invalid_argument,
                "average_metrics: the weights of all ranks are zero; give at least one rank a "
                "positive weight");
  for (auto& [name, sum] : sums) sum /= weights;
  return sums;
}

}  // namespace kolo

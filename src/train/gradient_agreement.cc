// The first step of a GradientExchange: ranks check that they train the same parameters, agree on
// the order of gradients and on buckets, and make room for them.
#include <torch/torch.h>

#include <algorithm>

#include "base/errors.h"
#include "train/dtype.h"
#include "train/gradient_exchange.h"

namespace kolo::train {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// Where the parameters of two ranks part, in words.
std::string difference(const std::string& a, const std::string& b, int rank_a, int rank_b) {
  const auto mine = lines_of(a), theirs = lines_of(b);
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    const std::string left = i < mine.size() ? mine[i] : "nothing";
    const std::string right = i < theirs.size() ? theirs[i] : "nothing";
    if (left != right)
      return fmt::format("parameter {} is {} on rank {} and {} on rank {}", i, left, rank_a, right,
                         rank_b);
  }
  return "nothing";
}

}  // namespace

runtime::StepPlan GradientExchange::plan(Communicator& communicator) {
  check_agreement(communicator);
  agree_on_sparse(communicator);
  order_ = agree_on_order(communicator);
  plan_ = make_bucket_plan(infos_, order_, options_.rules);
  make_buckets(communicator);
  put_residuals(communicator);
  if (planned_) planned_(communicator);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (infos_[i].is_sparse)
      used_[i] = parameters_[i].grad().defined();
    else
      collect(i);
  }
  if (measures_norms_)
    for (GradientBucket& bucket : buckets_)
      local_squared_ += torch::dot(bucket.flat, bucket.flat).item<double>();
  return step_plan();
}

void GradientExchange::check_agreement(Communicator& communicator) {
  const std::string text = describe(infos_);
  const std::uint64_t mine = hash_of(text);
  std::vector<std::int64_t> hashes = communicator.allgather(
      std::span<const std::int64_t>(reinterpret_cast<const std::int64_t*>(&mine), 1));
  if (std::all_of(hashes.begin(), hashes.end(), [&](auto hash) { return hash == hashes[0]; }))
    return;
  std::vector<char> all;
  const auto counts = communicator.allgather(text.data(), text.size(), 1, DataType::uint8,
                                             [&](std::span<const std::size_t> sizes) {
                                               std::size_t total = 0;
                                               for (const std::size_t size : sizes) total += size;
                                               all.resize(total);
                                               return static_cast<void*>(all.data());
                                             });
  std::vector<std::string> texts;
  std::size_t place = 0;
  for (const std::size_t count : counts) {
    texts.emplace_back(all.data() + place, count);
    place += count;
  }
  for (std::size_t r = 1; r < texts.size(); ++r)
    if (texts[r] != texts[0])
      throw_error(ErrorCode::invalid_argument,
                  "DistributedOptimizer: ranks do not train the same parameters: {}",
                  difference(texts[0], texts[r], 0, static_cast<int>(r)));
}

/// A parameter is sparse for all once its gradient is on one.
void GradientExchange::agree_on_sparse(Communicator& communicator) {
  if (options_.sparse_as_dense || !options_.uses_hooks) return;
  std::vector<std::uint8_t> sparse(infos_.size());
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    const torch::Tensor& grad = parameters_[i].grad();
    sparse[i] = grad.defined() && grad.is_sparse() ? 1 : 0;
  }
  communicator.allreduce(std::span(sparse), ReduceOp::max);
  for (std::size_t i = 0; i < infos_.size(); ++i) infos_[i].is_sparse = sparse[i] != 0;
}

/// The order in which gradients came on the first rank; those that did not come last, in reverse.
std::vector<std::uint32_t> GradientExchange::agree_on_order(Communicator& communicator) {
  std::vector<std::uint32_t> order = order_;
  std::vector<bool> came(infos_.size());
  for (const std::uint32_t index : order) came[index] = true;
  for (std::size_t i = infos_.size(); i-- > 0;)
    if (!came[i]) order.push_back(static_cast<std::uint32_t>(i));
  communicator.broadcast(order.data(), order.size(), DataType::int32, 0);
  return order;
}

void GradientExchange::change_bucket_size(std::size_t bytes) {
  torch::NoGradGuard no_grad;
  const std::vector<GradientBucket> old = std::move(buckets_);
  std::vector<torch::Tensor> places;
  for (const Parameter& state : states_) places.push_back(state.view);
  options_.rules.bucket_bytes = bytes;
  plan_ = make_bucket_plan(infos_, order_, options_.rules);
  make_buckets(pipeline_->communicator());
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (places[i].defined()) states_[i].view.copy_(places[i]);
  pipeline_->set_plan(step_plan());
}

void GradientExchange::make_buckets(Communicator& communicator) {
  torch::NoGradGuard no_grad;
  buckets_.clear();
  reducer_->forget();
  missing_.clear();
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    const auto& planned = plan_.buckets[b];
    GradientBucket bucket;
    bucket.plan = &planned;
    bucket.memory = allocate(communicator, planned.count * size_of(planned.type));
    bucket.flat = tensor_over(bucket.memory, planned.count, scalar_type(planned.type));
    for (const auto& [index, offset] : planned.members) {
      const torch::Tensor& parameter = parameters_[index];
      Parameter& state = states_[index];
      // Memory of other devices, and layouts with holes, come and go by copies.
      state.is_staged = !parameter.is_cpu() || !parameter.is_non_overlapping_and_dense();
      state.bucket = b;
      torch::Tensor place =
          bucket.flat.narrow(0, static_cast<std::int64_t>(offset), parameter.numel());
      state.view = state.is_staged ? place.view(parameter.sizes())
                                   : place.as_strided(parameter.sizes(), parameter.strides());
      bucket.views.push_back(state.view);
    }
    missing_.push_back(planned.members.size());
    buckets_.push_back(std::move(bucket));
  }
}

}  // namespace kolo::train

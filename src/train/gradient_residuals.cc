// What compression has left out so far, as bytes and back.
//
// It is kept by parameter: buckets may be cut in another way when a run goes on.
#include <torch/torch.h>

#include "base/errors.h"
#include "base/log.h"
#include "train/gradient_exchange.h"

namespace kolo::train {
namespace {

const std::string kErrors = std::string(kKeptError) + ":";

/// One rank's share of what `of_ranks` left out together. Averages divide what all bring by the
/// number of ranks, so there a share is the mean; sums do not, so there it is an equal part.
NamedTensors share_of(const std::vector<std::string>& of_ranks, ReduceOp op, int ranks) {
  NamedTensors all = load_tensors(of_ranks[0]);
  for (std::size_t r = 1; r < of_ranks.size(); ++r)
    for (const auto& [name, tensor] : load_tensors(of_ranks[r]))
      if (name.starts_with(kErrors)) all[name].add_(tensor);
  const double divisor =
      op == ReduceOp::average ? static_cast<double>(of_ranks.size()) : static_cast<double>(ranks);
  for (auto& [name, tensor] : all)
    if (name.starts_with(kErrors)) tensor.div_(divisor);
  return all;
}

}  // namespace

void GradientExchange::each_residual(
    const std::function<void(const std::string&, const torch::Tensor&)>& action) const {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (std::size_t m = 0; m < buckets_[b].views.size(); ++m)
      for (const auto& [what, tensor] : reducer_->kept(b, buckets_[b], m))
        action(what + ":" + infos_[plan_.buckets[b].members[m].parameter].name, tensor);
}

std::string GradientExchange::residuals() const {
  NamedTensors all = loaded_residuals_;
  each_residual([&](const std::string& name, const torch::Tensor& tensor) { all[name] = tensor; });
  return all.empty() ? "" : tensors_bytes(all);
}

void GradientExchange::load_residuals(const std::vector<std::string>& of_ranks) {
  torch::NoGradGuard no_grad;
  Communicator& communicator = pipeline_->communicator();
  const auto me = static_cast<std::size_t>(communicator.rank());
  loaded_residuals_.clear();
  const bool is_whole = std::none_of(of_ranks.begin(), of_ranks.end(),
                                     [](const std::string& bytes) { return bytes.empty(); });
  if (is_whole && !of_ranks.empty())
    loaded_residuals_ = of_ranks.size() == static_cast<std::size_t>(communicator.size())
                            ? load_tensors(of_ranks[me])
                            : share_of(of_ranks, options_.op, communicator.size());
  if (plan_.fingerprint == 0) return;
  reducer_->forget();
  put_residuals(communicator);
}

void GradientExchange::put_residuals(Communicator& communicator) {
  if (loaded_residuals_.empty()) return;
  torch::NoGradGuard no_grad;
  for (std::size_t b = 0; b < buckets_.size(); ++b) reducer_->prepare(communicator, b, buckets_[b]);
  const NamedTensors loaded = std::exchange(loaded_residuals_, {});
  std::size_t used = 0;
  each_residual([&](const std::string& name, const torch::Tensor& tensor) {
    const auto found = loaded.find(name);
    if (found == loaded.end() || found->second.sizes() != tensor.sizes()) return;
    torch::Tensor(tensor).copy_(found->second);
    ++used;
  });
  if (used < loaded.size())
    log::warning(
        "DistributedOptimizer: {} of {} residuals of the checkpoint match no parameter and are "
        "dropped",
        loaded.size() - used, loaded.size());
}

}  // namespace kolo::train

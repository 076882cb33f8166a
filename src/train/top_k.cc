// Top-k sparsification with memory: Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", 2018.
//
// Of a gradient plus what was left out before, the k entries of largest absolute value travel, as
// pairs of place and value that every rank gathers; the rest is kept for the next step.
// Cost: one selection, and n · k pairs received instead of the whole gradient.
#include <torch/torch.h>

#include <cmath>
#include <deque>

#include "base/errors.h"
#include "train/dtype.h"
#include "train/gradient_reducer.h"

namespace kolo::train {
namespace {

class TopKReducer final : public GradientReducer {
 public:
  TopKReducer(double ratio, ReduceOp op) : ratio_(ratio), op_(op) {
    if (!(ratio > 0 && ratio <= 1))
      throw_error(ErrorCode::invalid_argument, "top-k: the ratio {} is not in (0, 1]", ratio);
  }

  void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    torch::NoGradGuard no_grad;
    prepare(communicator, index, bucket);
    torch::Tensor& error = errors_[index];
    error.add_(bucket.flat);
    const auto k = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(ratio_ * static_cast<double>(error.numel()))));
    const torch::Tensor places = std::get<1>(error.abs().topk(k, 0, true, false));
    const torch::Tensor values = error.index_select(0, places);
    error.index_fill_(0, places, 0);

    torch::Tensor all_places, all_values;
    const auto gather = [&](const torch::Tensor& mine, torch::Tensor& all) {
      communicator.allgather(
          mine.data_ptr(), static_cast<std::size_t>(k), 1, data_type(mine.scalar_type()),
          [&](std::span<const std::size_t> counts) {
            all = torch::empty({static_cast<std::int64_t>(counts.size()), k}, mine.options());
            return all.data_ptr();
          });
    };
    gather(places, all_places);
    gather(values, all_values);
    bucket.flat.zero_();
    for (int r = 0; r < communicator.size(); ++r)
      bucket.flat.index_add_(0, all_places[r], all_values[r]);
    if (op_ == ReduceOp::average) bucket.flat.div_(communicator.size());
  }
  void forget() override { errors_.clear(); }

  void prepare(Communicator&, std::size_t index, GradientBucket& bucket) override {
    if (errors_.size() <= index) errors_.resize(index + 1);
    if (!errors_[index].defined()) errors_[index] = torch::zeros_like(bucket.flat);
  }
  [[nodiscard]] NamedTensors kept(std::size_t index, const GradientBucket& bucket,
                                  std::size_t member) const override {
    if (index >= errors_.size() || !errors_[index].defined()) return {};
    return {{kKeptError, part_of(errors_[index], bucket, member)}};
  }

 private:
  double ratio_;
  ReduceOp op_;
  std::deque<torch::Tensor> errors_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_top_k_reducer(double ratio, ReduceOp op) {
  return std::make_unique<TopKReducer>(ratio, op);
}

}  // namespace kolo::train

// The state of an optimizer is copied tensor by tensor, into the memory of the copy before: a
// commit after each step must not cost more than it takes to move the bytes, and one in place moves
// none. To other ranks goes an archive with everything but the bytes of tensors, and then those, in
// place.
#include "kolo/torch/elastic.h"
#include "train/elastic/tensor_copies.h"
#include "train/optim/serialization.h"

namespace kolo::elastic {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;

class OptimizerPart final : public Part {
 public:
  explicit OptimizerPart(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    train::check_copyable(optimizer);
  }

  std::string bytes() override { return train::optimizer_bytes(optimizer_); }
  void load(const std::string& bytes) override { train::load_optimizer_bytes(optimizer_, bytes); }
  void save() override;
  void mark() override;
  void restore() override;
  void broadcast(Communicator& group, int root) override;

 private:
  struct Kept {
    /// Null: the parameter has none. A clone of libtorch's, which shares the tensors.
    std::unique_ptr<OptimizerParamState> state;
    std::vector<train::RememberedTensor> tensors;  // those of the state
  };
  template <class F>
  void remember(F how);
  template <class F>
  void each_parameter(F f) {
    for (auto& group : optimizer_.param_groups())
      for (const torch::Tensor& parameter : group.params()) f(parameter);
  }
  [[nodiscard]] OptimizerParamState* state_of(const torch::Tensor& parameter) {
    const auto found = optimizer_.state().find(train::state_key(parameter));
    return found == optimizer_.state().end() ? nullptr : found->second.get();
  }

  torch::optim::Optimizer& optimizer_;
  std::vector<std::unique_ptr<OptimizerOptions>> options_;  // of each group
  std::vector<Kept> kept_;                                  // of each parameter
};

template <class F>
void OptimizerPart::remember(F how) {
  options_.clear();
  for (const auto& group : optimizer_.param_groups()) options_.push_back(group.options().clone());
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    if (kept_.size() == i) kept_.emplace_back();
    Kept& kept = kept_[i++];
    const OptimizerParamState* state = state_of(parameter);
    kept.state = state == nullptr ? nullptr : state->clone();
    if (state == nullptr) return;
    std::size_t t = 0;
    train::each_tensor(*kept.state, [&](torch::Tensor& tensor) {
      if (kept.tensors.size() == t) kept.tensors.emplace_back();
      how(kept.tensors[t++], tensor);
    });
  });
}

void OptimizerPart::save() {
  remember([](train::RememberedTensor& kept, torch::Tensor& tensor) { kept.save(tensor); });
}
void OptimizerPart::mark() {
  remember([](train::RememberedTensor& kept, torch::Tensor& tensor) { kept.mark(tensor); });
}

void OptimizerPart::restore() {
  for (std::size_t g = 0; g < options_.size(); ++g)
    optimizer_.param_groups()[g].set_options(options_[g]->clone());
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    const Kept& kept = kept_[i++];
    if (kept.state == nullptr) {
      optimizer_.state().erase(train::state_key(parameter));
      return;
    }
    auto state = kept.state->clone();
    std::size_t t = 0;
    train::each_tensor(*state, [&](torch::Tensor& tensor) { kept.tensors[t++].restore(tensor); });
    optimizer_.state()[train::state_key(parameter)] = std::move(state);
  });
}

void OptimizerPart::broadcast(Communicator& group, int root) {
  std::string outline;
  if (group.rank() == root) outline = train::optimizer_outline(optimizer_);
  auto size = static_cast<std::int64_t>(outline.size());
  group.broadcast(&size, 1, DataType::int64, root);
  outline.resize(static_cast<std::size_t>(size));
  group.broadcast(outline.data(), outline.size(), DataType::uint8, root);
  if (group.rank() != root) train::load_optimizer_bytes(optimizer_, outline);
  each_parameter([&](const torch::Tensor& parameter) {
    OptimizerParamState* state = state_of(parameter);
    if (state == nullptr) return;
    train::each_tensor(*state, [&](torch::Tensor& tensor) {
      if (group.rank() != root) tensor = torch::empty(tensor.sizes(), tensor.options());
      train::broadcast_tensor(tensor, group, root);
    });
  });
}

}  // namespace

std::unique_ptr<Part> part_of(torch::optim::Optimizer& optimizer) {
  return std::make_unique<OptimizerPart>(optimizer);
}

}  // namespace kolo::elastic

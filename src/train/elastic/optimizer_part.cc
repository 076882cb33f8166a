// The state of an optimizer is copied tensor by tensor, into the memory of the copy before: a
// commit after each step must not cost more than it takes to move the bytes. To other ranks goes an
// archive with everything but the bytes of tensors, and then those, in place.
#include "kolo/torch/elastic.h"
#include "train/elastic/tensor_copies.h"
#include "train/optim/serialization.h"

namespace kolo::elastic {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;
using Tensors = std::vector<torch::Tensor>;

class OptimizerPart final : public Part {
 public:
  explicit OptimizerPart(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    train::check_copyable(optimizer);
  }

  std::string bytes() override { return train::optimizer_bytes(optimizer_); }
  void load(const std::string& bytes) override { train::load_optimizer_bytes(optimizer_, bytes); }
  void save() override;
  void restore() override;
  void broadcast(Communicator& group, int root) override;

 private:
  struct Copy {
    std::unique_ptr<OptimizerParamState> state;  // null: the parameter has none
    Tensors tensors;                             // those of the state
  };
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
  std::vector<Copy> copies_;                                // of each parameter
};

/// A clone of libtorch's shares its tensors. Here they are replaced by copies, in `memory`.
std::unique_ptr<OptimizerParamState> deep_copy(const OptimizerParamState& state, Tensors& memory) {
  auto copy = state.clone();
  std::size_t i = 0;
  train::each_tensor(*copy, [&](torch::Tensor& tensor) {
    if (memory.size() == i) memory.emplace_back();
    train::copy_tensor(tensor, memory[i]);
    tensor = memory[i++];
  });
  return copy;
}

void OptimizerPart::save() {
  options_.clear();
  for (const auto& group : optimizer_.param_groups()) options_.push_back(group.options().clone());
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    if (copies_.size() == i) copies_.emplace_back();
    Copy& copy = copies_[i++];
    const OptimizerParamState* state = state_of(parameter);
    copy.state = state == nullptr ? nullptr : deep_copy(*state, copy.tensors);
  });
}

void OptimizerPart::restore() {
  for (std::size_t g = 0; g < options_.size(); ++g)
    optimizer_.param_groups()[g].set_options(options_[g]->clone());
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    const Copy& copy = copies_[i++];
    if (copy.state == nullptr) {
      optimizer_.state().erase(train::state_key(parameter));
      return;
    }
    Tensors memory;
    if (OptimizerParamState* state = state_of(parameter))
      train::each_tensor(*state, [&](torch::Tensor& tensor) { memory.push_back(tensor); });
    optimizer_.state()[train::state_key(parameter)] = deep_copy(*copy.state, memory);
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

// An optimizer's options and state as bytes, for broadcasts and checkpoints.
//
// libtorch 1.13 writes options but does not read them back (the learning rate of a checkpoint is
// lost), names parameters by their addresses, and leaves state in place that the saved optimizer
// did not have. Here a parameter is named by its place, and what is loaded replaces what was there.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace kolo::train {

using StateMap =
    std::remove_reference_t<decltype(std::declval<torch::optim::Optimizer&>().state())>;

/// As libtorch's own keys: the address of a parameter, written out by versions before 2.
template <class Key = StateMap::key_type>
[[nodiscard]] Key state_key(const torch::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

/// The state of a parameter, made if it is not there.
template <class ParamState>
ParamState& state_of(StateMap& states, const torch::Tensor& parameter) {
  auto& state = states[state_key(parameter)];
  if (state == nullptr) state = std::make_unique<ParamState>();
  return static_cast<ParamState&>(*state);
}

/// Throws unsupported for an optimizer that is none of those whose state can be copied.
void check_copyable(const torch::optim::Optimizer& optimizer);

void save_optimizer(const torch::optim::Optimizer& optimizer,
                    torch::serialize::OutputArchive& archive);
/// The same from other hands: `parameters[g]` are those of group g, and `write_state` writes the
/// state of one of them, or returns false if it has none.
void save_groups(const torch::optim::Optimizer& optimizer,
                 const std::vector<std::vector<torch::Tensor>>& parameters,
                 const std::function<bool(const torch::Tensor& parameter,
                                          torch::serialize::OutputArchive& state)>& write_state,
                 torch::serialize::OutputArchive& archive);
/// Throws invalid_argument when groups or parameters differ in number, unsupported for an optimizer
/// that is not copyable.
void load_optimizer(torch::optim::Optimizer& optimizer, torch::serialize::InputArchive& archive);

/// The entries of an archive by name, and back: what the state of one parameter consists of,
/// whatever the optimizer.
using NamedValues = std::map<std::string, torch::IValue>;
[[nodiscard]] NamedValues values_of(torch::serialize::InputArchive& archive);
[[nodiscard]] NamedValues values_of(const torch::optim::OptimizerParamState& state);
void write_values(const NamedValues& values, torch::serialize::OutputArchive& archive);
/// A state of the type that goes with `options`. Throws unsupported for unknown ones.
[[nodiscard]] std::unique_ptr<torch::optim::OptimizerParamState> make_state(
    const torch::optim::OptimizerOptions& options, const NamedValues& values);

/// Every tensor of a state that is there, always in the same order. Throws unsupported for a state
/// of an optimizer that is not copyable.
void each_tensor(torch::optim::OptimizerParamState& state,
                 const std::function<void(torch::Tensor&)>& visit);

/// Tensors by name as bytes, and back.
using NamedTensors = std::map<std::string, torch::Tensor>;
[[nodiscard]] std::string tensors_bytes(const NamedTensors& tensors);
[[nodiscard]] NamedTensors load_tensors(const std::string& bytes);

/// The whole of an archive as bytes, and back.
[[nodiscard]] std::string archive_bytes(torch::serialize::OutputArchive& archive);
void load_archive(torch::serialize::InputArchive& archive, const std::string& bytes);

[[nodiscard]] std::string optimizer_bytes(const torch::optim::Optimizer& optimizer);
/// The same without the bytes of the state's tensors: they have their shapes and types, and zeros.
[[nodiscard]] std::string optimizer_outline(const torch::optim::Optimizer& optimizer);
void load_optimizer_bytes(torch::optim::Optimizer& optimizer, const std::string& bytes);

template <class T>
T read(torch::serialize::InputArchive& archive, const char* key) {
  torch::IValue value;
  archive.read(key, value);
  return value.to<T>();
}

/// The loss, with gradients, if there is a closure.
[[nodiscard]] inline torch::Tensor evaluate(const torch::optim::Optimizer::LossClosure& closure) {
  if (closure == nullptr) return {};
  torch::AutoGradMode with_gradients(true);
  return closure();
}

}  // namespace kolo::train

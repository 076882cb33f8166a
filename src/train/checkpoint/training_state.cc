// Every part of the state becomes a named string of bytes and back. The network is checked as a
// whole before any tensor is changed: the names, shapes and types must be those of the checkpoint.
#include <torch/torch.h>

#include <cstring>
#include <map>

#include "base/errors.h"
#include "kolo/torch/checkpoint.h"
#include "train/generator.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

constexpr const char* kUser = "user.";

std::string random_part(int rank) { return "random." + std::to_string(rank); }

using train::NamedTensors;

/// Parameters and buffers; they share memory with the network.
NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors all;
  for (const auto& item : module.named_parameters()) all[item.key()] = item.value();
  for (const auto& item : module.named_buffers())
    if (item.value().defined()) all[item.key()] = item.value();
  return all;
}

/// libtorch's own loading would put tensors of another shape in place without a word.
void load_module(torch::nn::Module& module, const std::string& bytes) {
  NamedTensors saved = train::load_tensors(bytes);
  NamedTensors mine = tensors_of(module);
  for (const auto& [name, tensor] : saved)
    if (!mine.contains(name))
      throw_error(ErrorCode::invalid_argument,
                  "the checkpoint has a tensor '{}' that the network does not have", name);
  for (const auto& [name, tensor] : mine) {
    auto found = saved.find(name);
    if (found == saved.end())
      throw_error(ErrorCode::invalid_argument,
                  "the network has a tensor '{}' that the checkpoint does not have", name);
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type())
      throw_error(
          ErrorCode::invalid_argument,
          "checkpoint: tensor '{}' was saved with another shape or type than it has in the network",
          name);
  }
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : mine) tensor.copy_(saved[name]);
}

const std::string& part(const CheckpointParts& parts, const std::string& name) {
  auto found = parts.find(name);
  if (found == parts.end())
    throw_error(ErrorCode::invalid_argument,
                "the checkpoint has no part '{}'; it was saved without one", name);
  return found->second;
}

}  // namespace

CheckpointParts capture(const TrainingState& state, int rank) {
  CheckpointParts parts;
  if (state.module != nullptr) parts["model"] = train::tensors_bytes(tensors_of(*state.module));
  if (state.optimizer != nullptr) parts["optimizer"] = train::optimizer_bytes(*state.optimizer);
  if (state.scheduler != nullptr) parts["scheduler"] = state.scheduler->state();
  if (state.sampler != nullptr) parts["sampler"] = state.sampler->state();
  if (state.random) parts[random_part(rank)] = train::generator_bytes();
  if (state.user != nullptr)
    for (const auto& [name, bytes] : *state.user) parts[kUser + name] = bytes;
  return parts;
}

void restore(const CheckpointParts& parts, const TrainingState& state, int rank) {
  if (state.module != nullptr) load_module(*state.module, part(parts, "model"));
  if (state.optimizer != nullptr)
    train::load_optimizer_bytes(*state.optimizer, part(parts, "optimizer"));
  if (state.scheduler != nullptr) state.scheduler->load_state(part(parts, "scheduler"));
  if (state.sampler != nullptr) state.sampler->load_state(part(parts, "sampler"));
  if (state.random)
    if (auto mine = parts.find(random_part(rank)); mine != parts.end())
      train::load_generator(mine->second);
  if (state.user != nullptr) {
    state.user->clear();
    for (const auto& [name, bytes] : parts)
      if (name.starts_with(kUser)) (*state.user)[name.substr(std::strlen(kUser))] = bytes;
  }
}

}  // namespace kolo

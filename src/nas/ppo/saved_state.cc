// The state of a learner as bytes, in the format of checkpoint files (versions and checksums).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>

#include "base/errors.h"
#include "nas/ppo/ppo.h"
#include "train/checkpoint/format.h"

namespace kolo::nas {
namespace {

template <class T>
std::string bytes_of(const T* data, std::size_t count) {
  std::string bytes(count * sizeof(T), '\0');
  std::memcpy(bytes.data(), data, bytes.size());
  return bytes;
}

template <class T>
void read_part(const std::map<std::string, std::string>& parts, const char* name, T* data,
               std::size_t count, const std::string& origin) {
  const auto found = parts.find(name);
  if (found == parts.end() || found->second.size() != count * sizeof(T))
    throw_error(ErrorCode::failed_precondition,
                "{} does not fit this policy: its part '{}' has {} bytes instead of {}", origin,
                name, found == parts.end() ? 0 : found->second.size(), count * sizeof(T));
  std::memcpy(data, found->second.data(), found->second.size());
}

void check_numbers(std::span<const float> values, const char* name, const std::string& origin) {
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    throw_error(ErrorCode::failed_precondition,
                "{} cannot be used: its part '{}' has values that are no numbers", origin, name);
}

}  // namespace

std::string Learner::save(std::uint64_t word) const {
  train::CheckpointContent content;
  content.step = updates_;
  const std::uint64_t numbers[] = {steps_, word};
  content.parts["ppo numbers"] = bytes_of(numbers, 2);
  content.parts["ppo weights"] = bytes_of(weights_.data(), weights_.size());
  content.parts["ppo first moments"] = bytes_of(first_moments_.data(), weights_.size());
  content.parts["ppo second moments"] = bytes_of(second_moments_.data(), weights_.size());
  return train::encode_checkpoint(content);
}

std::uint64_t Learner::load(const std::string& bytes, const std::string& origin) {
  const train::CheckpointContent content = train::decode_checkpoint(bytes, origin);
  std::uint64_t numbers[2] = {};
  std::vector<float> weights(weights_.size()), first(weights.size()), second(weights.size());
  read_part(content.parts, "ppo numbers", numbers, 2, origin);
  const auto read_values = [&](const char* name, std::vector<float>& values) {
    read_part(content.parts, name, values.data(), values.size(), origin);
    check_numbers(values, name, origin);
  };
  read_values("ppo weights", weights);
  read_values("ppo first moments", first);
  read_values("ppo second moments", second);
  const auto steps_per_update = static_cast<std::uint64_t>(options_.noptepochs) *
                                static_cast<std::uint64_t>(options_.nminibatches);
  // Some may have been left out, but more would end Adam's corrections in a number that is none.
  if (numbers[0] / steps_per_update > content.step)
    throw_error(ErrorCode::failed_precondition,
                "{} does not fit this policy: it counts {} steps in {} updates of {} each", origin,
                numbers[0], content.step, steps_per_update);
  updates_ = content.step;
  steps_ = numbers[0];
  weights_ = std::move(weights);
  first_moments_ = std::move(first);
  second_moments_ = std::move(second);
  return numbers[1];
}

}  // namespace kolo::nas

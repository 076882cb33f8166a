#include "search/sampler/wrapper.h"

#include "base/errors.h"

namespace kolo::search {

Outcome outcome_of(const Trial& trial, const std::vector<Direction>& directions) {
  Outcome outcome{trial.state, trial.values, {}};
  for (std::size_t i = 0; i < outcome.values.size(); ++i)
    if (directions[i] == Direction::maximize) outcome.values[i] = -outcome.values[i];
  if (trial.violation > 0) outcome.constraints.push_back(trial.violation);
  return outcome;
}

SamplerOptions inner_options(const SamplerOptions& outer, const Value* settings) {
  SamplerOptions inner = outer;
  inner.settings.clear();
  if (settings != nullptr) {
    if (!settings->is_dict())
      throw_error(ErrorCode::invalid_argument, "settings = {}: must be a dictionary",
                  settings->to_string());
    for (const auto& [name, value] : settings->as_dict()) inner.settings.emplace(name, value);
  }
  return inner;
}

}  // namespace kolo::search

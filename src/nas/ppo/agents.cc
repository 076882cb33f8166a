// Agents as ranks: averages by kolo's own collectives.
#include <algorithm>
#include <vector>

#include "kolo/communicator.h"
#include "kolo/context.h"
#include "kolo/nas/ppo.h"

namespace kolo::nas {

AverageFunction average_over(Communicator& communicator) {
  return
      [&communicator, sums = std::vector<float>()](std::span<float> values, double weight) mutable {
        // The weights are summed with the values, so that one operation does.
        const auto mine = static_cast<float>(weight);
        sums.resize(values.size() + 1);
        std::transform(values.begin(), values.end(), sums.begin(),
                       [mine](float value) { return mine * value; });
        sums.back() = mine;
        communicator.allreduce(std::span(sums), ReduceOp::sum);
        const float total = sums.back();
        std::transform(sums.begin(), sums.end() - 1, values.begin(),
                       [total](float sum) { return sum / total; });
      };
}

PpoOptions with_agents_as_ranks(PpoOptions options) {
  if (!is_initialized() || size() == 1) return options;
  options.agent = rank();
  options.average_gradients = average_over(world());
  return options;
}

}  // namespace kolo::nas

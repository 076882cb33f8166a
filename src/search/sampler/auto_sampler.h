// `auto`: picks a sampler for the space, the objectives and the number of trials planned, and says
// why. The rules, the first that fits:
//
//   nothing to choose                                        random
//   several objectives, 1,000 trials or more                 nsga2
//   several objectives                                       tpe
//   a choice of more than 1,000 values                       tpe
//   numbers only, 100 trials or more per parameter           cmaes, after gp for the first part
//   conditions, or at least half of the parameters categorical   forest
//   up to 40 parameters                                      gp
//   otherwise                                                forest
//
// Models of all trials become slow when there are many: gp hands over to tpe (cmaes where there are
// numbers only) at 500 trials, forest to tpe at 5,000. Every sampler sees the whole history.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_auto_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options);

}  // namespace kolo::search

// BOHB's model: TPE per budget, over the results of early stopping.
//
// Falkner, Klein and Hutter, "BOHB: robust and efficient hyperparameter optimization at scale",
// 2018; constants as in HpBandSter. Every report (trial, budget, value) is an observation of its
// budget; failed trials are observations of infinite loss at the budget they reached. The largest
// budget with more than min_points + 2 observations (min_points = parameters + 1) has the model:
// good = the best top_n_percent (at least min_points), bad = the rest (at least min_points), by the
// first objective. With probability random_fraction a trial is random; else num_samples candidates
// are drawn from the good density with bandwidth_factor times its bandwidth, and the one with the
// best ratio of densities is next. Pair it with the scheduler hb_bohb.
// Cost of an ask: O(n) in the observations of one budget, at most 256 of which are kernels.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_bohb_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options);

}  // namespace kolo::search

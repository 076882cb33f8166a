// Covariance matrix adaptation evolution strategy.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_cmaes_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options);

}  // namespace kolo::search

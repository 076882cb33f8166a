// Asynchronous model-based search with forests: DeepHyper's AMBS, later CBO.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_forest_sampler(std::shared_ptr<const Space> space,
                                             SamplerOptions options);

}  // namespace kolo::search

// Designs of experiments: points that cover the space evenly and do not look at results.
//
// sobol, halton: the sequences of low_discrepancy.h. lhs: Latin hypercubes (McKay, Beckman and
// Conover 1979) of n_points, one after the other: in each, every parameter takes each n-th of its
// range once. Points that the space refuses are replaced from the prior.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_sobol_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options);
std::unique_ptr<Sampler> make_halton_sampler(std::shared_ptr<const Space> space,
                                             SamplerOptions options);
std::unique_ptr<Sampler> make_lhs_sampler(std::shared_ptr<const Space> space,
                                          SamplerOptions options);

}  // namespace kolo::search

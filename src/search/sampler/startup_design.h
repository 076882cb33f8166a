// The first trials of a model-based sampler: a Latin hypercube (McKay et al. 1979) of n points, in
// which every parameter takes each n-th of its prior once.
#pragma once

#include "search/space/encoder.h"

namespace kolo::search {

/// Point `number` of the design of `count` points that belongs to `seed`. Conditions are settled
/// and refused points are replaced from the prior, both from `random`.
Point startup_point(const Encoder& encoder, std::uint64_t seed, std::uint64_t count,
                    std::uint64_t number, Random& random);

}  // namespace kolo::search

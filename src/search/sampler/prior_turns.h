// Trials that a model-based sampler draws from the prior all the same.
#pragma once

#include <cstdint>

#include "kolo/search/space.h"

namespace kolo::search {

/// Where conditions cut the space into branches, the first good one may hide a better one from the
/// model: every eighth trial is drawn from the prior.
inline bool is_prior_turn(const Space& space, std::uint64_t number) {
  constexpr std::uint64_t kEvery = 8;
  return space.has_conditions() && number % kEvery == kEvery - 1;
}

}  // namespace kolo::search

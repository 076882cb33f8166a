// Ray Tune's ConcurrencyLimiter: at most `max_concurrent` trials run at once.
//
// Settings: `sampler` is the name of the sampler that is limited, `settings` are its own. With
// `batch`, results are held back until all of a batch of max_concurrent trials have ended, and
// handed on together in the order of their trials; no trial starts before.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_concurrency_limiter(std::shared_ptr<const Space> space,
                                                  SamplerOptions options);

}  // namespace kolo::search

// Ray Tune's Repeater: each suggestion is tried `repeat` times, against noise.
//
// Trials come in groups of `repeat` with the same point; the position of a trial in its group is
// its number modulo `repeat`. When all of a group have ended, the inner sampler is told once: the
// mean of those that did not fail, or a failure if all did. Settings: `sampler`, `settings` of it.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_repeater(std::shared_ptr<const Space> space, SamplerOptions options);

}  // namespace kolo::search

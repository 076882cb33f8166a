// Local search: the neighbours of the best trials, the most promising first.
//
// White, Nolen and Savani, "Exploring the loss landscape in neural architecture search", 2021, show
// that plain local search is hard to beat on cell spaces. Here it does not stop at a local optimum
// and does not try neighbours blindly:
// Vocabulary: a *centre* is one of the n_centers best trials. A *neighbour* differs from its centre
// in one parameter: any other value of a discrete one with few values, a step from it otherwise.
// A neighbour's *forecast* is the score of its centre plus the difference of the independent
// effects (EffectModel) of the two values, minus `curiosity` for values seldom seen. The neighbour
// with the best forecast that was not tried is next. When a centre has no neighbours left, the
// search goes on around the other ones: a restart that forgets nothing. Cost of an ask: at most 512
// trials in the model, centres x parameters x values neighbours.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_local_search_sampler(std::shared_ptr<const Space> space,
                                                   SamplerOptions options);

}  // namespace kolo::search

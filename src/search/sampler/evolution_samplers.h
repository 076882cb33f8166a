// Evolution: aging for one objective, NSGA-II for several.
//
// evolution: Real et al., "Regularized evolution for image classifier architecture search", 2019.
// The *population* is the last `population` trials that ended; of `sample` members drawn from it
// the best is the parent, and its child differs in exactly one parameter. Members leave by age, not
// by merit. Until the population is full, trials are random. Asynchronous: each ask makes one
// child.
//
// nsga2: Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002, in its
// steady-state form: the *parents* are the best `population` trials so far (by TrialRanking: how
// many dominate them, then how crowded they are), two are chosen by tournaments of two, and their
// child is crossed and mutated.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_evolution_sampler(std::shared_ptr<const Space> space,
                                                SamplerOptions options);
std::unique_ptr<Sampler> make_nsga2_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options);

}  // namespace kolo::search

// AgEBO: aging evolution for the architecture, Bayesian optimisation for how it is trained.
//
// Egele et al., "AgEBO-Tabular: joint neural architecture and hyperparameter search with autotuned
// data-parallel training for tabular data", 2021. The parameters below a path (`evolve`) belong to
// aging evolution (see aging_population.h); all others are asked from one optimiser with a forest,
// which is told how good each trial was, whatever its architecture. Every trial takes
// hyperparameters from it, also those with random architectures before the population is full.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_agebo_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options);

}  // namespace kolo::search

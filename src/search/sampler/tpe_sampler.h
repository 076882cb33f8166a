// TPE: two densities, one of the good trials and one of the others; the next trial is where their
// ratio is largest.
//
// Bergstra et al., "Algorithms for hyper-parameter optimization", 2011; the joint form follows
// Falkner et al. (BOHB, 2018) and Watanabe, "Tree-structured Parzen estimator: understanding its
// algorithm components", 2023.
//
// Vocabulary: after a *design* of n_startup trials, the best ceil(gamma x n) trials, at most
// max_good, are *good*, all others and those still running (constant liar: a place under
// evaluation is worth less) are *bad*. n_candidates rows are drawn from the density of the good
// ones and the one with the largest log good - log bad is tried. In a space of discrete parameters
// only, a point is not tried twice while there are others.
// Joint (default): one density over all parameters, in which a trial speaks only of the parameters
// that were active in it. Univariate: each parameter on its own.
//
// Cost of an ask does not grow with the number of trials n (beyond log n): the good are at most
// max_good, and the bad are represented by at most max_bad of them: the best half exactly, the rest
// by a sample whose weights stand for all. It is (max_good + max_bad) x n_candidates x parameters.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_tpe_sampler(std::shared_ptr<const Space> space,
                                          SamplerOptions options);

}  // namespace kolo::search

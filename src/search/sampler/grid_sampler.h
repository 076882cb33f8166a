// Grid search times random samples, in Ray Tune's order and numbers.
//
// Vocabulary: an *axis* is a parameter with a list of entries to try (a grid_search; with the
// setting `levels`, every parameter). A *sample* is one walk through all combinations of the axes,
// the first axis (by path) turning fastest; everything that is not an axis is drawn anew for each
// combination. `num_samples` samples are made; -1 means without end. Starting points are samples
// too: what a point gives is fixed for its sample, and an axis it gives is no axis there.
// Combinations that the space refuses are passed over, and so are those that differ only in a
// parameter that is inactive.
// Cost: time per ask in proportion to the number of parameters; combinations are never listed.
#pragma once

#include "kolo/search/sampler.h"

namespace kolo::search {

std::unique_ptr<Sampler> make_grid_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options);

}  // namespace kolo::search

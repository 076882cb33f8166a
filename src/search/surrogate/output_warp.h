// Transforms objective values so that a Gaussian process can model them.
//
// Two steps. Values on the bad side of the median are replaced by what their rank would be in a
// normal distribution whose spread is that of the good side (the half-rank warp of Song et al.,
// "The Vizier Gaussian process bandit algorithm", 2024): how bad a bad trial was matters little,
// and heavy tails vanish. Only if the bad side is the wider one: where most of the space is a
// plateau with a hole in it, ranks would blow up the ripples of the plateau to the depth of the
// hole, and no model would find the way to it. Then a power transformation (Yeo and Johnson, 2000)
// with the exponent of greatest likelihood removes what skew is left. The result has mean 0 and
// variance 1. Both steps keep the order of the values.
#pragma once

#include <Eigen/Core>

namespace kolo::search {

/// Values to be minimised; not-a-number marks a failed trial, which becomes as bad as the worst.
Eigen::VectorXd warp_outputs(const Eigen::VectorXd& values);

}  // namespace kolo::search

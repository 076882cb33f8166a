// Changing points a little, for evolutionary samplers.
#pragma once

#include "search/space/encoder.h"

namespace kolo::search {

/// A child that differs from the parent in one active parameter, drawn anew to a different value;
/// settled and allowed. Where none is found in reasonable time, a point from the prior.
Point mutate_one(const Space& space, const Point& parent, Random& random);

/// Gives one active parameter, none of those that `stay` (ascending), another value from its
/// distribution. The point is not settled. Does nothing where there is nothing to change.
void change_one(const Space& space, Point& point, const std::vector<std::size_t>& stay,
                Random& random);

/// A child that has each parameter from one of its parents, with on average one of them changed
/// besides: a discrete one drawn anew, a number moved by a tenth of its range.
Point cross_and_mutate(const Encoder& encoder, const Point& mother, const Point& father,
                       Random& random);

}  // namespace kolo::search

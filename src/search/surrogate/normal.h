// What acquisition functions need of the normal distribution beside its curve and quantiles, which
// are in search/space/encoder.h.
#pragma once

namespace kolo::search {

/// φ(z)
double normal_density(double z);
/// Φ(z)/φ(z), also where both underflow.
double mills_ratio(double z);

}  // namespace kolo::search

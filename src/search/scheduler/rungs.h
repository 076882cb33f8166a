// The rungs of successive halving: grace, grace·rf, grace·rf², … up to max_t.
#pragma once

#include <cmath>
#include <vector>

namespace kolo::search {

/// Times grace·rf^(k + skip), k = 0, 1, …, that are not beyond max_t (with room for rounding).
inline std::vector<double> milestones(double grace, double rf, double max_t, int skip = 0) {
  std::vector<double> times;
  for (int k = skip;; ++k) {
    double time = grace * std::pow(rf, k);
    if (!(time <= max_t * (1 + 1e-12)) || times.size() == 64) return times;
    times.push_back(time);
  }
}

}  // namespace kolo::search

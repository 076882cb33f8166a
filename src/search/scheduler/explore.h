// How population based training varies a configuration, staying inside its domain.
#pragma once

#include <map>
#include <string>

#include "kolo/random.h"
#include "kolo/search/space.h"

namespace kolo::search {

struct ExploreSettings {
  double resample_probability = 0.25;
  double factor_up = 1.2;
  double factor_down = 0.8;
};

/// A variation of `config` in the parameters of `mutations`; everything else stays. Each parameter
/// is drawn anew with the resample probability, or when it is missing or not a value of its domain;
/// otherwise a choice moves to a neighbour in its list, and a number is multiplied by one of the
/// factors and brought back into its bounds (whole numbers stay whole and move by at least one). A
/// sample_from that follows from other values is computed anew; one that draws is drawn anew with
/// the resample probability, or multiplied by a factor if it is a number.
/// Where forbidden clauses refuse 100 variations in a row, `config` comes back as it is.
[[nodiscard]] Value explore(const Value& config, const Space& mutations,
                            const ExploreSettings& settings, Random& random);

/// `config` with a draw for each parameter of `mutations` that is missing in it and active.
[[nodiscard]] Value fill_missing(Value config, const Space& mutations, Random& random);

/// `config` with the values of `point`; parameters that are inactive in it are removed.
[[nodiscard]] Value with_point(Value config, const Space& mutations, const Point& point);

/// The number at the parameter's path, or the index of the choice; NaN if there is none or it is
/// not a value of the domain.
[[nodiscard]] double entry_in(const Value& config, const Space& mutations, std::size_t parameter);

}  // namespace kolo::search

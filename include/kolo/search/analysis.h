// The analysis of results: the best trial, the Pareto front, the importance of parameters, and how
// fast a search came near the optimum.
//
// Functions of their arguments alone.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/space.h"
#include "kolo/search/trial.h"

namespace kolo::search {

/// By what a trial is judged: its last result, its best one, the mean of all, of the last 5 or 10.
enum class Scope { last, all, avg, last_5_avg, last_10_avg };

/// From "last", "all", "avg", "last-5-avg" or "last-10-avg"; throws not_found.
Scope parse_scope(std::string_view name);

/// The results of one trial in the order in which they came.
struct Curve {
  TrialId trial{};
  std::vector<double> values;
};

/// What the scope makes of the results; none without results.
[[nodiscard]] std::optional<double> value_in_scope(std::span<const double> values,
                                                   Direction direction, Scope scope);

/// The first of the best. Trials whose value is not finite are left out, unless told otherwise
/// (NaN always is). None if nothing is left.
[[nodiscard]] std::optional<TrialId> best_trial(std::span<const Curve> curves, Direction direction,
                                                Scope scope = Scope::last,
                                                bool filter_nan_and_inf = true);

/// Places of the vectors that no other one dominates, ascending; vectors with NaN are left out.
/// Throws invalid_argument when a vector does not have one value per direction.
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const std::vector<double>> vectors,
                                                    std::span<const Direction> directions);

/// The volume between the vectors and the reference point, which they have to be better than in all
/// objectives to count. Exact: O(n log n) for two and three objectives, exponential in their number
/// beyond (dozens of vectors with ten objectives, thousands with four).
/// Throws invalid_argument as pareto_front does.
[[nodiscard]] double hypervolume(std::span<const std::vector<double>> vectors,
                                 std::span<const double> reference,
                                 std::span<const Direction> directions);

struct Importance {
  std::string path;
  double share = 0;  ///< of all parameters together: 1
};

/// How much of the variance of the objective over the space each parameter explains, interactions
/// included, greatest first (fANOVA: a forest learns the objective and is integrated over the
/// space, so that it does not matter where a sampler went). Results that are not finite are left
/// out. `budgets`: where results were reached after different times, as those of trials that were
/// stopped early, the time of each; a trial may have several results. Throws invalid_argument when
/// fewer than ten results are left, or when the lists differ in length.
[[nodiscard]] std::vector<Importance> parameter_importance(const Space& space,
                                                           std::span<const Point> points,
                                                           std::span<const double> values,
                                                           std::span<const double> budgets = {});

/// After each trial, how far the best one so far is from the optimum; infinite before the first
/// value that is a number.
[[nodiscard]] std::vector<double> regret_curve(std::span<const double> values, Direction direction,
                                               double optimum);

struct MeanCurve {
  std::vector<double> mean;
  std::vector<double> standard_error;  ///< 0 with a single curve
};
/// The mean over several runs, place by place, up to the length of the shortest.
[[nodiscard]] MeanCurve mean_curve(std::span<const std::vector<double>> curves);

}  // namespace kolo::search

// Learning curves: how many epochs a search with early stopping needs.
//
// Tables of the format kolo-lc-table-1: a pool of configurations, each with its accuracy after
// every epoch. A configuration that a sampler proposes stands for its nearest neighbour in the pool
// (parameters on the unit cube) that this search has not tried before: the pool is thin in seven
// dimensions, and a search that converges would otherwise train the same few rows again and again.
// One worker trains one epoch at a time; what counts is the accuracy at the last epoch of the best
// trial that was trained to the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kolo/search.h"

namespace bench {

namespace search = kolo::search;

struct CurvePool {
  std::string name;
  std::shared_ptr<const search::Space> space;
  search::Direction direction = search::Direction::maximize;
  double best_final = 0;
  std::vector<std::vector<double>> units;   // one row per configuration, in the unit cube
  std::vector<std::vector<double>> curves;  // one value per epoch

  [[nodiscard]] std::size_t epochs() const { return curves.front().size(); }
  /// The row nearest to the point among those that are not in `used`.
  [[nodiscard]] std::size_t nearest(const search::Point& point,
                                    const std::vector<bool>& used) const;
};

/// All headers of that format in the folder, by name. Throws kolo::Error.
std::vector<CurvePool> read_curve_pools(const std::string& folder);

struct Pairing {
  std::string sampler;
  std::string scheduler;
  std::map<std::string, search::Value> settings;  // of the scheduler
};

/// The regret after each epoch spent, up to `budget` epochs; infinite before the first trial that
/// was trained to the end.
std::vector<double> simulate(const CurvePool& pool, const Pairing& pairing, std::uint64_t seed,
                             std::size_t budget);

}  // namespace bench

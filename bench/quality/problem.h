// What a search is tried on: a space, a function of its points, and the best value there is.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kolo/search.h"

namespace bench {

namespace search = kolo::search;

struct Problem {
  std::string name;
  bool is_table = false;
  /// Of the data, or of the function's values at some points: results kept elsewhere are good for
  /// as long as it stays the same.
  std::string checksum;
  std::shared_ptr<const search::Space> space;
  search::Direction direction = search::Direction::minimize;
  double optimum = 0;
  std::function<double(const search::Point&)> evaluate;
  /// Parameters as other libraries need them described: name, type, bounds or number of choices,
  /// and on which values of which other parameter they depend.
  nlohmann::json parameters = nlohmann::json::array();
};

/// All `<stem>.json` of the format kolo-hpo-table-1 in the folder, by name. Throws kolo::Error.
std::vector<Problem> read_tables(const std::string& folder);

/// Branin, Hartmann, Ackley, Levy, Rosenbrock, a mixed and a conditional one.
std::vector<Problem> synthetic_problems();

/// A hash of the values at eight points of the prior.
std::string fingerprint(const Problem& problem);

}  // namespace bench

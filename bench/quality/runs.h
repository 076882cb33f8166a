// Many searches: every sampler on every problem with every seed, on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quality/problem.h"

namespace bench {

/// The regret after each evaluation. Repeated configurations count as evaluations.
std::vector<double> search_once(const Problem& problem, const std::string& sampler,
                                std::uint64_t seed, std::size_t evaluations);

/// Calls work(0) … work(count - 1) on all cores. The first exception is thrown again.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

/// Regrets of one contender on one problem: for each seed, after each budget.
using Regrets = std::vector<std::vector<double>>;

/// What Optuna found in earlier runs: a file of lines {"problem", "checksum", "form", "seed",
/// "version", "regret": {"50": …}}, which search_optuna_peer.py writes.
class PeerResults {
 public:
  explicit PeerResults(const std::string& path);
  /// None unless there are results of all seeds 0 … seeds - 1.
  [[nodiscard]] std::optional<Regrets> get(const Problem& problem, const std::string& form,
                                           std::size_t seeds,
                                           const std::vector<std::size_t>& budgets) const;

 private:
  std::map<std::string, double> regrets_;  // by problem, form, seed and budget
};

}  // namespace bench

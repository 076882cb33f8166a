// TPE's division of the history into good and bad trials, in bounded size.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "search/sampler/trial_ranking.h"

namespace kolo::search {

class TpeSplit {
 public:
  explicit TpeSplit(std::size_t objectives) : ranking_(objectives) {}

  double gamma = 0.15;
  std::size_t max_good = 25;
  std::size_t max_bad = 160;
  bool by_rank = true;  // whether better ones weigh more

  struct Groups {
    std::vector<std::size_t> good, bad;  // places
    std::vector<float> good_weights, bad_weights;
  };

  /// A trial that has ended.
  void add(std::span<const Trial> trials, std::size_t place);
  [[nodiscard]] std::size_t ended() const noexcept { return ranking_.size(); }
  /// `running` are bad too; if they are many, the latest stand for all.
  [[nodiscard]] Groups groups(std::span<const Trial> trials,
                              const std::vector<std::size_t>& running) const;

 private:
  TrialRanking ranking_;
  // The trials with the smallest hashes: a uniform sample that changes little from ask to ask.
  std::set<std::pair<std::uint64_t, std::size_t>> sample_;
};

}  // namespace kolo::search

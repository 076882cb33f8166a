// A key has a tier (complete, pruned, infeasible, failed), two numbers by which trials of one tier
// are compared, and the place as the last resort, so that the order is total. With several
// objectives the number of trials that dominate each one is updated with every result, and keys are
// made when they are needed.
#include "search/sampler/trial_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "search/analysis/dominance.h"

namespace kolo::search {

std::vector<double> crowding_distances(std::span<const std::vector<double>> values) {
  const std::size_t count = values.size();
  std::vector<double> distances(count, 0);
  if (count == 0) return distances;
  std::vector<std::size_t> order(count);
  for (std::size_t objective = 0; objective < values[0].size(); ++objective) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return values[a][objective] < values[b][objective];
    });
    const double range = values[order.back()][objective] - values[order.front()][objective];
    distances[order.front()] = distances[order.back()] = std::numeric_limits<double>::infinity();
    if (!(range > 0)) continue;
    for (std::size_t i = 1; i + 1 < count; ++i)
      distances[order[i]] +=
          (values[order[i + 1]][objective] - values[order[i - 1]][objective]) / range;
  }
  return distances;
}

TrialRanking::Key TrialRanking::key_of(const Trial& trial, std::size_t place) {
  if (trial.state == TrialState::failed) return {3, 0, 0, place};
  if (trial.violation > 0) return {2, trial.violation, trial.values[0], place};
  if (trial.state == TrialState::pruned) return {1, -trial.budget, trial.values[0], place};
  return {0, trial.values[0], 0, place};
}

bool is_better(const Trial& left, const Trial& right) {
  const TrialRanking::Key a = TrialRanking::key_of(left, 0), b = TrialRanking::key_of(right, 0);
  if (a.tier == b.tier && a.tier < 2 && left.values.size() > 1)
    return dominates(left.values, right.values);
  return a < b;
}

void TrialRanking::add(std::span<const Trial> trials, std::size_t place) {
  ++count_;
  if (objectives_ == 1) {
    order_.insert(key_of(trials[place], place));
    return;
  }
  std::uint32_t dominators = 0;
  if (trials[place].is_good()) {
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      const Trial& other = trials[ended_[i]];
      if (!other.is_good()) continue;
      if (dominates(other.values, trials[place].values))
        ++dominators;
      else if (dominates(trials[place].values, other.values))
        ++dominators_[i];
    }
  }
  ended_.push_back(place);
  dominators_.push_back(dominators);
}

std::vector<TrialRanking::Key> TrialRanking::keys_of_several(std::span<const Trial> trials) const {
  std::vector<Key> keys;
  std::vector<std::size_t> front;  // places in keys
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    const Trial& trial = trials[ended_[i]];
    Key key = key_of(trial, ended_[i]);
    if (key.tier == 0) key.first = dominators_[i];
    if (key.tier == 0 && dominators_[i] == 0) {
      front.push_back(keys.size());
      values.push_back(trial.values);
    }
    keys.push_back(key);
  }
  const std::vector<double> distances = crowding_distances(values);
  for (std::size_t i = 0; i < front.size(); ++i) keys[front[i]].second = -distances[i];
  return keys;
}

std::vector<std::size_t> TrialRanking::best(std::span<const Trial> trials,
                                            std::size_t count) const {
  count = std::min(count, count_);
  std::vector<std::size_t> places;
  places.reserve(count);
  if (objectives_ == 1) {
    for (auto next = order_.begin(); places.size() < count; ++next) places.push_back(next->place);
    return places;
  }
  std::vector<Key> keys = keys_of_several(trials);
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end());
  for (std::size_t i = 0; i < count; ++i) places.push_back(keys[i].place);
  return places;
}

}  // namespace kolo::search

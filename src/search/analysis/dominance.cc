// Fronts are kept up to date by insertion. A vector belongs to the first front that does not
// dominate it, found by binary search. Members that it dominates move back by exactly one front,
// which may push others back in turn.
#include "search/analysis/dominance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kolo::search {
namespace {

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
}

bool dominated_by_any(const std::vector<Objectives>& front, std::span<const double> values) {
  return std::any_of(front.begin(), front.end(),
                     [&](const Objectives& member) { return dominates(member, values); });
}

// Distance between the two neighbours along each objective, as a share of its range.
std::vector<double> crowding(std::span<const Objectives> vectors,
                             const std::vector<std::size_t>& members) {
  std::vector<double> distance(vectors.size(), 0);
  std::vector<std::size_t> order = members;
  for (std::size_t k = 0; k < vectors[members[0]].size(); ++k) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return vectors[a][k] < vectors[b][k]; });
    distance[order.front()] = distance[order.back()] = std::numeric_limits<double>::infinity();
    double range = vectors[order.back()][k] - vectors[order.front()][k];
    if (!(range > 0)) continue;
    for (std::size_t i = 1; i + 1 < order.size(); ++i)
      distance[order[i]] += (vectors[order[i + 1]][k] - vectors[order[i - 1]][k]) / range;
  }
  return distance;
}

}  // namespace

std::size_t Fronts::front_of(std::span<const double> values) const noexcept {
  // Whoever is dominated by front k is dominated by every front before it.
  auto first = std::partition_point(
      fronts_.begin(), fronts_.end(),
      [&](const std::vector<Objectives>& front) { return dominated_by_any(front, values); });
  return static_cast<std::size_t>(first - fronts_.begin());
}

std::size_t Fronts::insert(std::span<const double> values) {
  std::size_t mine = front_of(values);
  std::vector<Objectives> arriving{Objectives(values.begin(), values.end())};
  for (std::size_t k = mine; !arriving.empty(); ++k) {
    if (k == fronts_.size()) fronts_.emplace_back();
    auto& front = fronts_[k];
    // Those that an arriving vector dominates step back by one front, never by more.
    auto stays = std::stable_partition(front.begin(), front.end(), [&](const Objectives& member) {
      return !dominated_by_any(arriving, member);
    });
    std::vector<Objectives> leaving(std::make_move_iterator(stays),
                                    std::make_move_iterator(front.end()));
    front.erase(stays, front.end());
    std::move(arriving.begin(), arriving.end(), std::back_inserter(front));
    arriving = std::move(leaving);
  }
  ++size_;
  return mine;
}

std::size_t Fronts::count_before(std::size_t front) const noexcept {
  std::size_t count = 0;
  for (std::size_t k = 0; k < std::min(front, fronts_.size()); ++k) count += fronts_[k].size();
  return count;
}

double Fronts::quantile(double q) const noexcept {
  double position = q * static_cast<double>(size_ - 1);
  auto lower = static_cast<std::size_t>(position);
  auto front_at = [&](std::size_t rank) {
    std::size_t k = 0;
    while (rank >= fronts_[k].size()) rank -= fronts_[k++].size();
    return static_cast<double>(k);
  };
  double below = front_at(lower);
  if (lower + 1 >= size_) return below;
  return below + (position - static_cast<double>(lower)) * (front_at(lower + 1) - below);
}

std::vector<std::size_t> front_numbers(std::span<const Objectives> vectors) {
  Fronts fronts;
  for (const auto& vector : vectors)
    if (!has_nan(vector)) fronts.insert(vector);
  std::vector<std::size_t> numbers;
  numbers.reserve(vectors.size());
  for (const auto& vector : vectors)
    numbers.push_back(has_nan(vector) ? fronts.fronts().size() : fronts.front_of(vector));
  return numbers;
}

std::vector<std::size_t> best_first(std::span<const Objectives> vectors) {
  std::vector<std::size_t> order(vectors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (vectors.empty()) return order;
  if (vectors[0].size() == 1) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      double x = vectors[a][0];
      double y = vectors[b][0];
      return std::isnan(y) ? !std::isnan(x) : x < y;
    });
    return order;
  }
  auto front = front_numbers(vectors);
  std::vector<double> distance(vectors.size(), 0);
  std::size_t last = *std::max_element(front.begin(), front.end());
  for (std::size_t k = 0; k <= last; ++k) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < vectors.size(); ++i)
      if (front[i] == k && !has_nan(vectors[i])) members.push_back(i);
    if (members.empty()) continue;
    auto apart = crowding(vectors, members);
    for (std::size_t member : members) distance[member] = apart[member];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return front[a] != front[b] ? front[a] < front[b] : distance[a] > distance[b];
  });
  return order;
}

}  // namespace kolo::search

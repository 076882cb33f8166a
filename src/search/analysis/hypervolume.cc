// Pareto fronts and the volume they dominate, exactly.
//
// Two objectives: one sweep. Three: a sweep along the third over a staircase in the first two (a
// sorted map), in which each vector enters and leaves once: O(n log n). More: WFG (While,
// Bradstreet and Barone, "A fast way of calculating exact hypervolumes", 2012): the volume is the
// sum over vectors of what each adds to those after it, which is its box less the volume of the
// others cut down ("limited") to that box; vectors dominated after the cut drop out, which keeps it
// fast.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/errors.h"
#include "kolo/search/analysis.h"
#include "search/analysis/dominance.h"

namespace kolo::search {
namespace {

using Front = std::vector<Objectives>;

/// All to be minimised.
Front turned(std::span<const std::vector<double>> vectors, std::span<const Direction> directions,
             const char* what) {
  if (directions.empty())
    throw_error(ErrorCode::invalid_argument, "{}: there is no objective", what);
  Front front;
  front.reserve(vectors.size());
  for (const auto& vector : vectors) {
    if (vector.size() != directions.size())
      throw_error(ErrorCode::invalid_argument, "{}: vector {} has {} values for {} objectives",
                  what, front.size(), vector.size(), directions.size());
    front.push_back(vector);
    for (std::size_t k = 0; k < vector.size(); ++k)
      if (directions[k] == Direction::maximize) front.back()[k] = -vector[k];
  }
  return front;
}

bool has_nan(const Objectives& vector) {
  return std::any_of(vector.begin(), vector.end(), [](double v) { return std::isnan(v); });
}

/// Sorted by the last objective, without those that another one equals or dominates.
void keep_front(Front& front) {
  std::sort(front.begin(), front.end(), [](const Objectives& a, const Objectives& b) {
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  });
  Front kept;
  for (auto& vector : front) {
    bool covered = std::any_of(kept.begin(), kept.end(), [&](const Objectives& other) {
      return other == vector || dominates(other, vector);
    });
    if (!covered) kept.push_back(std::move(vector));
  }
  front = std::move(kept);
}

double area(Front front, const Objectives& reference) {
  std::sort(front.begin(), front.end());
  double sum = 0;
  double lowest = reference[1];
  for (const auto& vector : front) {
    if (vector[1] >= lowest) continue;
    sum += (reference[0] - vector[0]) * (lowest - vector[1]);
    lowest = vector[1];
  }
  return sum;
}

/// The staircase of a sweep: steps x -> y, x ascending, y descending, and the area behind it.
class Staircase {
 public:
  Staircase(double right, double top) : right_(right), top_(top) {}

  void insert(double x, double y) {
    auto next = steps_.lower_bound(x);
    if (next != steps_.end() && next->first == x && next->second <= y) return;
    double left_y = next == steps_.begin() ? top_ : std::prev(next)->second;
    if (left_y <= y) return;
    // What it adds, strip by strip, until a step that is lower.
    double from = x;
    double roof = left_y;
    while (next != steps_.end() && next->second >= y) {
      area_ += (next->first - from) * (roof - y);
      from = next->first;
      roof = next->second;
      next = steps_.erase(next);
    }
    double to = next == steps_.end() ? right_ : next->first;
    area_ += (to - from) * (roof - y);
    steps_[x] = y;
  }

  [[nodiscard]] double area() const noexcept { return area_; }

 private:
  double right_, top_;
  double area_ = 0;
  std::map<double, double> steps_;
};

double volume_of_three(Front front, const Objectives& reference) {
  std::sort(front.begin(), front.end(),
            [](const Objectives& a, const Objectives& b) { return a[2] < b[2]; });
  Staircase below(reference[0], reference[1]);
  double volume = 0;
  for (std::size_t i = 0; i < front.size(); ++i) {
    below.insert(front[i][0], front[i][1]);
    double next = i + 1 < front.size() ? front[i + 1][2] : reference[2];
    volume += below.area() * (next - front[i][2]);
  }
  return volume;
}

double volume(Front front, const Objectives& reference);

double wfg(Front front, const Objectives& reference) {
  keep_front(front);
  // With the worst in the last objective first, the cut makes many vectors equal there.
  std::reverse(front.begin(), front.end());
  double sum = 0;
  for (std::size_t i = 0; i < front.size(); ++i) {
    double box = 1;
    for (std::size_t k = 0; k < reference.size(); ++k) box *= reference[k] - front[i][k];
    Front limited;
    for (std::size_t j = i + 1; j < front.size(); ++j) {
      limited.push_back(front[j]);
      for (std::size_t k = 0; k < reference.size(); ++k)
        limited.back()[k] = std::max(limited.back()[k], front[i][k]);
    }
    sum += box - volume(std::move(limited), reference);
  }
  return sum;
}

double volume(Front front, const Objectives& reference) {
  if (front.empty()) return 0;
  switch (reference.size()) {
    case 1: return reference[0] - (*std::min_element(front.begin(), front.end()))[0];
    case 2: return area(std::move(front), reference);
    case 3: return volume_of_three(std::move(front), reference);
    default: return wfg(std::move(front), reference);
  }
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const std::vector<double>> vectors,
                                      std::span<const Direction> directions) {
  Front all = turned(vectors, directions, "pareto front");
  // In the order of the first objective, nobody is dominated by one that comes later.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!has_nan(all[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a] < all[b]; });
  std::vector<std::size_t> front;
  for (std::size_t i : order)
    if (std::none_of(front.begin(), front.end(),
                     [&](std::size_t member) { return dominates(all[member], all[i]); }))
      front.push_back(i);
  std::sort(front.begin(), front.end());
  return front;
}

double hypervolume(std::span<const std::vector<double>> vectors, std::span<const double> reference,
                   std::span<const Direction> directions) {
  Front front = turned(vectors, directions, "hypervolume");
  std::vector<double> point(reference.begin(), reference.end());
  Objectives corner = turned(std::span(&point, 1), directions, "hypervolume's reference")[0];
  std::erase_if(front, [&](const Objectives& vector) {
    for (std::size_t k = 0; k < vector.size(); ++k)
      if (!(vector[k] < corner[k])) return true;  // NaN too
    return false;
  });
  return volume(std::move(front), corner);
}

}  // namespace kolo::search

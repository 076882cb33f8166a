// Sugiyama's method in four steps. Each box gets a layer (find_layers). An arrow over several
// layers gets a bend in each of them (add_bends), so that afterwards all lines join neighbouring
// layers. The order inside layers is improved by sweeps that sort each layer by the mean position
// of its neighbours; the order with the fewest crossings is kept (order_layers). Positions then
// approach the mean of the neighbours in further sweeps, with the order and the gaps kept (place,
// settle).
#include "nas/graph/layered_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kolo::nas {
namespace {

constexpr double kGapAcross = 22, kGapDown = 34, kBendWidth = 6;
constexpr int kOrderSweeps = 24, kPlaceSweeps = 200;

/// A box, or a bend of an arrow.
struct Point {
  std::size_t layer;
  double width, height;
  bool is_bend;
  double x = 0;
  std::vector<std::size_t> above{}, below{};
  std::vector<double> above_weights{}, below_weights{};
};

class LayeredLayout {
 public:
  LayeredLayout(const std::vector<LayoutBox>& boxes, const std::vector<LayoutArrow>& arrows,
                const std::vector<std::size_t>& order) {
    find_layers(boxes, arrows, order);
    for (std::size_t i = 0; i < arrows.size(); ++i) add_bends(arrows[i]);
    layers_.resize(num_layers());
    for (std::size_t i = 0; i < points_.size(); ++i) layers_[points_[i].layer].push_back(i);
    order_layers();
    place();
  }

  std::pair<double, double> answer(std::vector<LayoutBox>& boxes,
                                   std::vector<LayoutArrow>& arrows) const {
    std::vector<double> tops, bottoms;
    double y = 0;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const std::size_t point : layer) height = std::max(height, points_[point].height);
      tops.push_back(y);
      bottoms.push_back(y + height);
      y += height + kGapDown;
    }
    double left = std::numeric_limits<double>::max(), right = std::numeric_limits<double>::lowest();
    for (const Point& point : points_) {
      left = std::min(left, point.x - point.width / 2);
      right = std::max(right, point.x + point.width / 2);
    }
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const std::size_t layer = points_[i].layer;
      boxes[i].x = points_[i].x - left;
      boxes[i].y = (tops[layer] + bottoms[layer]) / 2;
    }
    for (std::size_t i = 0; i < arrows.size(); ++i)
      for (const std::size_t bend : bends_[i]) {
        const Point& point = points_[bend];
        arrows[i].bends.push_back({point.x - left, tops[point.layer], bottoms[point.layer]});
      }
    return {right - left, bottoms.back()};
  }

 private:
  /// As far from the beginning as the longest way; then as close to who comes next as possible, so
  /// that skip connections lie beside what they skip to.
  void find_layers(const std::vector<LayoutBox>& boxes, const std::vector<LayoutArrow>& arrows,
                   const std::vector<std::size_t>& order) {
    std::vector<std::vector<std::size_t>> from(boxes.size()), to(boxes.size());
    for (const LayoutArrow& arrow : arrows) {
      from[arrow.to].push_back(arrow.from);
      to[arrow.from].push_back(arrow.to);
    }
    std::vector<std::size_t> layer(boxes.size(), 0);
    for (const std::size_t box : order)
      for (const std::size_t source : from[box])
        layer[box] = std::max(layer[box], layer[source] + 1);
    for (auto box = order.rbegin(); box != order.rend(); ++box) {
      if (to[*box].empty()) continue;
      std::size_t nearest = std::numeric_limits<std::size_t>::max();
      for (const std::size_t follower : to[*box]) nearest = std::min(nearest, layer[follower]);
      layer[*box] = nearest - 1;
    }
    for (std::size_t i = 0; i < boxes.size(); ++i)
      points_.push_back({layer[i], boxes[i].width, boxes[i].height, false});
  }

  void add_bends(const LayoutArrow& arrow) {
    std::vector<std::size_t>& bends = bends_.emplace_back();
    std::size_t previous = arrow.from;
    for (std::size_t layer = points_[arrow.from].layer + 1; layer < points_[arrow.to].layer;
         ++layer) {
      points_.push_back({layer, kBendWidth, 0, true});
      bends.push_back(points_.size() - 1);
      join(previous, bends.back(), arrow.weight);
      previous = bends.back();
    }
    join(previous, arrow.to, arrow.weight);
  }

  void join(std::size_t upper, std::size_t lower, double weight) {
    points_[upper].below.push_back(lower);
    points_[upper].below_weights.push_back(weight);
    points_[lower].above.push_back(upper);
    points_[lower].above_weights.push_back(weight);
  }

  [[nodiscard]] std::size_t num_layers() const {
    std::size_t count = 0;
    for (const Point& point : points_) count = std::max(count, point.layer + 1);
    return count;
  }

  void order_layers() {
    auto best = layers_;
    std::size_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t step = 1; step < layers_.size(); ++step)
        sort_by_neighbours(down ? step : layers_.size() - 1 - step, down);
      const std::size_t now = crossings();
      if (now >= fewest) continue;
      fewest = now;
      best = layers_;
    }
    layers_ = best;
  }

  void sort_by_neighbours(std::size_t index, bool by_above) {
    const auto rank = ranks();
    auto& layer = layers_[index];
    std::vector<std::pair<double, std::size_t>> keys;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      const auto& neighbours = by_above ? points_[layer[i]].above : points_[layer[i]].below;
      double mean = static_cast<double>(rank[layer[i]]);
      if (!neighbours.empty()) {
        mean = 0;
        for (const std::size_t neighbour : neighbours) mean += static_cast<double>(rank[neighbour]);
        mean /= static_cast<double>(neighbours.size());
      }
      keys.emplace_back(mean, i);
    }
    std::sort(keys.begin(), keys.end());  // equal means keep their order
    std::vector<std::size_t> sorted;
    for (const auto& [mean, i] : keys) sorted.push_back(layer[i]);
    layer = sorted;
  }

  [[nodiscard]] std::vector<std::size_t> ranks() const {
    std::vector<std::size_t> rank(points_.size());
    for (const auto& layer : layers_)
      for (std::size_t i = 0; i < layer.size(); ++i) rank[layer[i]] = i;
    return rank;
  }

  [[nodiscard]] std::size_t crossings() const {
    const auto rank = ranks();
    std::size_t count = 0;
    for (const auto& layer : layers_) {
      std::vector<std::pair<std::size_t, std::size_t>> lines;
      for (const std::size_t point : layer)
        for (const std::size_t lower : points_[point].below)
          lines.emplace_back(rank[point], rank[lower]);
      for (std::size_t i = 0; i < lines.size(); ++i)
        for (std::size_t j = i + 1; j < lines.size(); ++j)
          count += (lines[i].first < lines[j].first && lines[i].second > lines[j].second) ||
                   (lines[i].first > lines[j].first && lines[i].second < lines[j].second);
    }
    return count;
  }

  void place() {
    for (const auto& layer : layers_) settle(layer, std::vector<Wish>(layer.size(), {0, 1}));
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep)
      for (std::size_t step = 0; step < layers_.size(); ++step) {
        const auto& layer = layers_[sweep % 2 == 0 ? step : layers_.size() - 1 - step];
        std::vector<Wish> wishes;
        for (const std::size_t point : layer) wishes.push_back(wish(points_[point]));
        settle(layer, wishes);
      }
  }

  struct Wish {
    double x, weight;
  };

  /// The mean of the neighbours above and below; straight lines through bends count most.
  [[nodiscard]] Wish wish(const Point& point) const {
    double sum = 0, weights = 0;
    const auto add = [&](const std::vector<std::size_t>& neighbours,
                         const std::vector<double>& their_weights) {
      for (std::size_t i = 0; i < neighbours.size(); ++i) {
        const Point& neighbour = points_[neighbours[i]];
        const double weight = their_weights[i] * (point.is_bend && neighbour.is_bend ? 4 : 1);
        sum += weight * neighbour.x;
        weights += weight;
      }
    };
    add(point.above, point.above_weights);
    add(point.below, point.below_weights);
    return weights > 0 ? Wish{sum / weights, weights} : Wish{point.x, 1};
  }

  /// Least squares to the wishes, in order, with gaps. Without the distances that boxes need at the
  /// least the answer is a sequence that never falls: neighbours that want to pass each other form
  /// a group at their mean.
  void settle(const std::vector<std::size_t>& layer, const std::vector<Wish>& wishes) {
    std::vector<double> offsets;
    double offset = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) offset += (points_[layer[i - 1]].width + points_[layer[i]].width) / 2 + kGapAcross;
      offsets.push_back(offset);
    }
    struct Group {
      double sum, weight;
      std::size_t count;
      [[nodiscard]] double mean() const { return sum / weight; }
    };
    std::vector<Group> groups;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      groups.push_back({wishes[i].weight * (wishes[i].x - offsets[i]), wishes[i].weight, 1});
      while (groups.size() > 1 && groups[groups.size() - 2].mean() > groups.back().mean()) {
        const Group last = groups.back();
        groups.pop_back();
        groups.back().sum += last.sum;
        groups.back().weight += last.weight;
        groups.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (const Group& group : groups)
      for (std::size_t member = 0; member < group.count; ++member, ++i)
        points_[layer[i]].x = group.mean() + offsets[i];
  }

  std::vector<Point> points_;  // the boxes first
  std::vector<std::vector<std::size_t>> bends_;
  std::vector<std::vector<std::size_t>> layers_;
};

}  // namespace

std::pair<double, double> lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutArrow>& arrows,
                                  const std::vector<std::size_t>& order) {
  return LayeredLayout(boxes, arrows, order).answer(boxes, arrows);
}

}  // namespace kolo::nas

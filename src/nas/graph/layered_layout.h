// The layout of a drawing: boxes in layers from top to bottom.
//
// Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures",
// 1981, in four steps: a layer for each box; a bend in each layer that a long arrow crosses; an
// order inside each layer by the means of neighbours, keeping the one with the fewest crossings;
// and places as close to the means of neighbours as order and distances allow, which is least
// squares under order, solved by pooling adjacent violators. For graphs of hundreds of boxes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace kolo::nas {

struct LayoutBox {
  double width = 0, height = 0;
  double x = 0, y = 0;  ///< of the middle: the answer
};

struct LayoutArrow {
  std::size_t from, to;
  double weight = 1;  ///< how much it wants to be straight
  struct Bend {
    double x, top, bottom;  ///< a straight line down through a layer
  };
  std::vector<Bend> bends{};  ///< the answer
};

/// `order` has every box after those with arrows to it. Answers width and height of the whole.
std::pair<double, double> lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutArrow>& arrows,
                                  const std::vector<std::size_t>& order);

}  // namespace kolo::nas

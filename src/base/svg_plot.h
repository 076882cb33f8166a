// Plots as SVG: lines, steps and points in one pair of axes, with a legend.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kolo {

struct PlotSeries {
  /// `failures` are crosses at the bottom: only where they are along x is known.
  enum class Style { line, steps, points, failures };

  std::string name{};                               ///< in the legend; empty = not there
  std::vector<std::pair<double, double>> points{};  ///< those that are not finite are left out
  Style style = Style::line;
  int color = 0;  ///< place in the palette, which repeats
  bool dashed = false;
  bool filled = false;  ///< the area between the line and the bottom is tinted
};

struct Plot {
  std::string title{}, subtitle{}, x_label{}, y_label{};
  bool log_x = false, log_y = false;
  std::vector<PlotSeries> series{};
  /// The part of y that is shown when it is not all: values beyond are marked at the edge.
  double y_low = 0, y_high = 0;
  bool y_from_zero = false;
};

/// A whole SVG document. The same plot gives the same text.
std::string svg_plot(const Plot& plot);

}  // namespace kolo

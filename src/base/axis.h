// Axes of plots: chooses marks at round numbers.
#pragma once

#include <string>
#include <vector>

namespace kolo {

/// A range of numbers drawn along a line, linearly or by logarithm.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  bool whole = false;  ///< of whole numbers: there are no marks between them

  /// The part of the way from low (0) to high (1).
  [[nodiscard]] double place(double value) const;
  /// About so many marks at 1, 2 or 5 times a power of ten; by logarithm, at powers of ten, or at
  /// 1, 2 and 5 times them where there are few. None lies outside.
  [[nodiscard]] std::vector<double> marks(int about) const;
};

/// An axis that shows all these numbers with a margin. Those that are not finite (or not positive,
/// by logarithm) do not count; without any the axis goes from 0 to 1 (1 to 10).
Axis axis_around(const std::vector<double>& values, bool log, double margin = 0.04);

/// As short as the distance of the marks permits: "0.25", "1,500", "2e-05".
std::string mark_text(double value, double distance);

}  // namespace kolo

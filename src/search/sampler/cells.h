// Points as rows of cells, the form that Parzen estimators read.
#pragma once

#include "search/space/encoder.h"
#include "search/surrogate/parzen.h"

namespace kolo::search {

/// Discrete ordered parameters with few values become levels, categoricals categories, and all
/// others lines.
class CellSpace {
 public:
  explicit CellSpace(std::shared_ptr<const Space> space);

  [[nodiscard]] const ParzenAxes& axes() const noexcept { return axes_; }
  [[nodiscard]] std::size_t size() const noexcept { return axes_->size(); }
  /// Appends one row.
  void append(const Point& point, std::vector<float>& cells) const;
  /// The entry of a cell; not-a-number stays.
  [[nodiscard]] double entry(std::size_t parameter, float cell) const;

 private:
  Encoder encoder_;
  ParzenAxes axes_;
};

}  // namespace kolo::search

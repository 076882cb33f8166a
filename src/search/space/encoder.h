// Points as rows of numbers in the unit cube, for models.
//
// A number becomes the share of its prior that lies below it (so that a uniform cube is the prior):
// linear, logarithmic, or the normal distribution's own curve. The n values of a discrete number
// or an ordinal stand in the middle of n equal cells, and any number decodes to the value of its
// cell: round trips of discrete values are exact, those of others to the last few bits.
// A categorical is one column (its cell, "label") or one column per value ("one-hot": 1 for the
// value, 0 for the others).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kolo/search/space.h"

namespace kolo::search {

struct EncoderOptions {
  enum class Categorical { label, one_hot };
  Categorical categorical = Categorical::one_hot;
  /// Categoricals with more values than this are label-encoded in any case.
  std::uint64_t one_hot_limit = 64;
  /// Adds, behind everything else, one column per conditional parameter: 1 active, 0 inactive.
  bool activity = false;
};

/// Which columns a parameter has.
struct EncodedColumns {
  std::size_t begin = 0;
  std::size_t count = 1;  ///< more than one: one-hot
  bool ordered = true;    ///< false: a label whose distance means nothing, or one-hot
};

class Encoder {
 public:
  explicit Encoder(std::shared_ptr<const Space> space, EncoderOptions options = {});

  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::span<const EncodedColumns> columns() const noexcept { return columns_; }
  [[nodiscard]] const Space& space() const noexcept { return *space_; }

  /// Inactive parameters get 0.5 in every column.
  void encode(const Point& point, std::span<double> row) const;
  [[nodiscard]] std::vector<double> encode(const Point& point) const;

  /// The nearest point, settled; what is newly active comes from the prior. `row` may lie outside
  /// of the cube. False if the point is not allowed.
  bool decode(std::span<const double> row, Point& point, Random& random) const;

  /// One parameter on [0, 1] (label form).
  [[nodiscard]] double to_unit(std::size_t parameter, double entry) const;
  [[nodiscard]] double from_unit(std::size_t parameter, double unit) const;

 private:
  std::shared_ptr<const Space> space_;
  std::vector<EncodedColumns> columns_;
  std::vector<std::size_t> conditional_;  // parameters with an activity column
  std::size_t width_ = 0;
};

/// The curve of the normal distribution and its inverse (Acklam's rational approximation with one
/// step of Newton's method: good to the last bits).
double normal_cdf(double z) noexcept;
double normal_quantile(double share) noexcept;

}  // namespace kolo::search

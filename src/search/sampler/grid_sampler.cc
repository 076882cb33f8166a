// A cursor holds the sample and, for each axis, the index of its current entry; turn() moves it
// like the digits of an odometer, the first axis fastest. A combination that the space refuses, or
// that repeats another one because an axis is inactive in it, is skipped, so that the cursor always
// stands on a combination that can be tried.
#include "search/sampler/grid_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "kolo/random.h"
#include "search/settings.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

class GridSampler final : public Sampler {
 public:
  GridSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("grid", std::move(space), std::move(options), StartingPoints::own) {
    SettingsReader settings("grid", this->options());
    num_samples_ = settings.integer("num_samples", 1, -1, std::numeric_limits<std::int64_t>::max());
    constant_ = settings.truth("constant_grid_search", false);
    const auto levels = settings.integer("levels", 0, 0, 1'000'000);
    settings.done();
    if (num_samples_ == 0)
      throw_error(ErrorCode::invalid_argument,
                  "sampler grid: num_samples = 0: must be -1 or above 0");
    make_axes(static_cast<std::uint64_t>(levels));
    turn_to_possible();
  }

  [[nodiscard]] bool exhausted() const override { return is_end(cursor_); }

  [[nodiscard]] std::string explain() const override {
    std::string text = "grid: every combination of";
    for (const Axis& axis : axes_) text += ' ' + space().parameters()[axis.parameter].path;
    return text + "; the rest is drawn from the prior";
  }

 protected:
  std::vector<Point> propose(std::size_t count) override {
    std::vector<Point> points;
    Cursor cursor = cursor_;
    while (points.size() < count && !is_end(cursor)) {
      // The cursor always stands on a combination that can be made.
      points.push_back(*make(cursor, asked() + points.size()));
      advance(cursor, asked() + points.size());
    }
    return points;
  }

  void on_ask(std::size_t) override { advance(cursor_, asked()); }

 private:
  struct Axis {
    std::size_t parameter;
    std::vector<double> entries;
  };
  struct Cursor {
    std::uint64_t sample = 0;
    std::vector<std::size_t> turn;  // per axis
  };

  void make_axes(std::uint64_t levels) {
    const Encoder encoder(shared_space());
    for (std::size_t i = 0; i < space().size(); ++i) {
      const Parameter& parameter = space().parameters()[i];
      if (!parameter.grid && levels == 0) continue;
      const std::uint64_t count =
          parameter.grid ? parameter.cardinality
                         : std::min(levels, parameter.cardinality ? parameter.cardinality : levels);
      Axis axis{i, {}};
      const bool all = parameter.cardinality == count;
      for (std::uint64_t k = 0; k < count; ++k) {
        // Both ends of a range belong to its grid.
        const double share =
            count == 1 ? 0.5 : static_cast<double>(k) / static_cast<double>(count - 1);
        const double entry =
            all ? space().nearest(i, parameter.low + share * (parameter.high - parameter.low))
                : encoder.from_unit(i, share);
        if (axis.entries.empty() || axis.entries.back() != entry) axis.entries.push_back(entry);
      }
      axes_.push_back(std::move(axis));
    }
    cursor_.turn.assign(axes_.size(), 0);
  }

  [[nodiscard]] bool is_end(const Cursor& cursor) const {
    return num_samples_ >= 0 && cursor.sample >= static_cast<std::uint64_t>(num_samples_);
  }

  // What the sample's starting point fixes; not-a-number elsewhere.
  [[nodiscard]] Point given(std::uint64_t sample) const {
    if (sample < starting_points().size()) return space().partial_point(starting_points()[sample]);
    return Point(space().size(), std::numeric_limits<double>::quiet_NaN());
  }

  // The point of a combination, or nothing if it is refused or repeats another one.
  [[nodiscard]] std::optional<Point> make(const Cursor& cursor, std::uint64_t number) const {
    constexpr int kTries = 100;
    const Point fixed = given(cursor.sample);
    Random random =
        constant_ ? Random(options().seed).stream("grid sample", cursor.sample) : stream(number);
    for (int attempt = 0; attempt < kTries; ++attempt) {
      Point point = fixed;
      for (std::size_t a = 0; a < axes_.size(); ++a)
        if (std::isnan(fixed[axes_[a].parameter]))
          point[axes_[a].parameter] = axes_[a].entries[cursor.turn[a]];
      const bool allowed = space().settle(point, random);
      for (std::size_t a = 0; a < axes_.size(); ++a)
        if (std::isnan(point[axes_[a].parameter]) && cursor.turn[a] != 0) return std::nullopt;
      if (allowed) return point;
    }
    return std::nullopt;
  }

  void turn(Cursor& cursor) const {
    const Point fixed = given(cursor.sample);
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (!std::isnan(fixed[axes_[a].parameter])) continue;
      if (++cursor.turn[a] < axes_[a].entries.size()) return;
      cursor.turn[a] = 0;
    }
    ++cursor.sample;
  }

  // To the next combination that trial `number` can have.
  void advance(Cursor& cursor, std::uint64_t number) const {
    do turn(cursor);
    while (!is_end(cursor) && !make(cursor, number));
  }

  void turn_to_possible() {
    while (!is_end(cursor_) && !make(cursor_, 0)) turn(cursor_);
  }

  std::int64_t num_samples_ = 1;
  bool constant_ = false;
  std::vector<Axis> axes_;
  Cursor cursor_;
};

}  // namespace

std::unique_ptr<Sampler> make_grid_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options) {
  return std::make_unique<GridSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search

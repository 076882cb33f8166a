// Whether the results of one space can be used in another.
//
// Space::outline() is stored with the results and compared with a later space. Parameters,
// constants and functions must be the same, because results could not be translated otherwise.
// Ranges, choices and conditions may change, as long as every point that was tried is also a point
// of the later space.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kolo/search/space.h"

namespace kolo::search {

class SpaceChange {
 public:
  /// `before` is the outline of the earlier space. `now` must outlive this.
  SpaceChange(const Json& before, const Space& now);

  /// What no result can be carried over: "the parameter 'lr' is missing".
  [[nodiscard]] const std::vector<std::string>& conflicts() const noexcept { return conflicts_; }
  /// What is other: "'lr' is now uniform(0, 2); it was uniform(0, 1)".
  [[nodiscard]] const std::vector<std::string>& changes() const noexcept { return changes_; }
  /// Whether a parameter changed whose values are gone through one by one.
  [[nodiscard]] bool changes_grid() const noexcept { return changes_grid_; }

  /// The point of the space now that means the same as a point of the earlier space; none if there
  /// is no such point. Only without conflicts.
  [[nodiscard]] std::optional<Point> carried(const Point& point) const;

 private:
  struct Origin {
    std::size_t place = 0;        // in the earlier space
    std::vector<double> entries;  // for each earlier choice; NaN = it is gone; empty = the same
  };

  void compare_parameters(const Json& before);
  void compare_choices(const Json& before, const Parameter& now, Origin& origin);
  void compare_leaves(const Json& before, const Json& now, const char* kind);

  const Space& now_;
  std::vector<Origin> origins_;  // of the parameters now
  std::vector<std::string> conflicts_, changes_;
  bool changes_grid_ = false;
};

/// The paths at which configurations have values, with those of conditional ones marked.
struct OutlinePath {
  std::string path;
  bool is_conditional = false;
};
[[nodiscard]] std::vector<OutlinePath> outline_paths(const Space& space);

}  // namespace kolo::search

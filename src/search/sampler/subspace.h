// Some parameters of a space as a space of their own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kolo/search/space.h"

namespace kolo::search {

class Subspace {
 public:
  /// `chosen` are places of parameters without conditions, ascending. Where the whole space refuses
  /// points, this one refuses those that it finds no completion for.
  Subspace(std::shared_ptr<const Space> whole, std::vector<std::size_t> chosen);

  [[nodiscard]] const std::shared_ptr<const Space>& space() const noexcept { return part_; }
  [[nodiscard]] const std::vector<std::size_t>& chosen() const noexcept { return chosen_; }

  /// The entries of a point of the whole space.
  [[nodiscard]] Point part_of(const Point& point) const;
  /// Writes entries into a point of the whole space.
  void put(const Point& part, Point& point) const;
  /// A random point of the whole space with these entries. One is found for every point that
  /// space() allows.
  [[nodiscard]] std::optional<Point> complete(const Point& part) const;
  /// Makes the point regular; true if it is allowed and still has the entries `part`.
  bool settle(const Point& part, Point& point, Random& random) const;

 private:
  std::shared_ptr<const Space> whole_;
  std::vector<std::size_t> chosen_;
  std::shared_ptr<const Space> part_;
};

}  // namespace kolo::search

// A search space: what configurations there are, and the flat view of it that samplers work on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/clause.h"
#include "kolo/search/domain.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// One free leaf of the space, checked and in its final form.
struct Parameter {
  enum class Kind { real, integer, ordinal, categorical };

  std::string path;  ///< "model/layers/2/units"
  Kind kind = Kind::real;
  /// Inclusive bounds of the number, or of the index of the choice. Infinite for randn.
  double low = 0, high = 0;
  bool log = false;
  double quantum = 0;  ///< values are multiples of it; 0 = none
  bool normal = false;
  double mean = 0, sd = 1;
  bool grid = false;                                              ///< written as grid_search
  std::shared_ptr<const std::vector<Value>> choices;              ///< ordinal and categorical only
  std::shared_ptr<const std::vector<double>> cumulative_weights;  ///< null = all the same
  std::uint64_t cardinality = 0;  ///< how many values there are; 0 = a continuum
  std::string domain;             ///< as written, for messages: "quniform(0, 1, 0.25)"

  [[nodiscard]] bool is_number() const noexcept {
    return kind == Kind::real || kind == Kind::integer;
  }
  [[nodiscard]] bool is_discrete() const noexcept { return cardinality != 0; }
};

/// One entry per parameter, in the order of Space::parameters(): the number itself, or the index
/// of the choice. Not-a-number marks an inactive parameter (its condition does not hold).
using Point = std::vector<double>;

/// True when the points have the same entries; inactive ones are equal to each other.
[[nodiscard]] bool same_point(const Point& left, const Point& right) noexcept;
[[nodiscard]] std::uint64_t hash_point(const Point& point) noexcept;

/// Told a configuration without its sample_from values; false means that it must not be tried.
using ConstraintFunction = std::function<bool(const Value& config)>;

/// Immutable and safe to read from several threads. Shared by samplers as shared_ptr<const Space>.
class Space {
 public:
  class Builder;

  /// A space without conditions. Throws invalid_argument naming the path and the rule.
  explicit Space(Spec spec);

  /// From text: the tree alone, or {"kolo_space": 1, "parameters": …, "conditions": …} as
  /// docs/search.md describes. `origin` is named in errors.
  static std::shared_ptr<const Space> from_json(std::string_view text,
                                                std::string_view origin = "the space");
  static std::shared_ptr<const Space> from_yaml(std::string_view text,
                                                std::string_view origin = "the space");

  Space(Space&&) noexcept;
  Space& operator=(Space&&) noexcept;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  ~Space();

  /// The free leaves in the order of a walk through the tree (keys sorted, list items by index).
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return parameters().size(); }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view path) const;
  /// Throws not_found, suggesting a near name.
  [[nodiscard]] std::size_t index_of(std::string_view path) const;

  /// The parameters in an order in which each comes after those that its condition speaks of.
  [[nodiscard]] std::span<const std::size_t> dependency_order() const noexcept;
  [[nodiscard]] bool is_conditional(std::size_t parameter) const noexcept;
  [[nodiscard]] bool has_conditions() const noexcept;
  /// Whether forbidden clauses or a constraint function can refuse a point.
  [[nodiscard]] bool has_refusals() const noexcept;
  [[nodiscard]] bool has_functions() const noexcept;
  /// The paths of everything that varies, parameters and functions, in the order of a walk through
  /// the tree.
  [[nodiscard]] std::vector<std::string> varied_paths() const;
  /// Whether the parameter is active, given the entries of those it depends on.
  [[nodiscard]] bool is_active(std::size_t parameter, const Point& point) const;
  /// The number of points, if it is finite and below 2^63 (conditions ignored).
  [[nodiscard]] std::optional<std::uint64_t> cardinality() const noexcept;

  /// One parameter from its own distribution, whatever the others are.
  [[nodiscard]] double sample_parameter(std::size_t parameter, Random& random) const;
  /// A point from the prior that allows() accepts. Throws failed_precondition when 10,000 draws in
  /// a row were refused, naming the clause that refused most.
  [[nodiscard]] Point sample(Random& random) const;
  /// Makes a point regular after an algorithm changed it: entries are rounded and clamped, inactive
  /// ones become not-a-number, newly active ones are drawn from the prior. True if it is allowed.
  bool settle(Point& point, Random& random) const;
  /// Whether the point is regular (see settle) and neither forbidden nor refused by the constraint.
  [[nodiscard]] bool allows(const Point& point) const;
  /// Rounds and clamps one entry to the nearest admissible value.
  [[nodiscard]] double nearest(std::size_t parameter, double value) const;

  /// The nested configuration: constants, the point's values, and functions, which draw from
  /// `random`. Inactive entries are absent (null inside lists).
  /// Throws failed_precondition naming the cycle of functions that wait for each other.
  [[nodiscard]] Value config(const Point& point, Random& random) const;
  /// The value of one parameter in a configuration.
  [[nodiscard]] Value value_of(std::size_t parameter, double entry) const;
  /// The entry of a value. Throws invalid_argument naming path and rule.
  [[nodiscard]] double entry_of(std::size_t parameter, const Value& value) const;
  /// The point of a whole configuration. Throws invalid_argument naming path and rule.
  [[nodiscard]] Point point(const Value& config) const;
  /// The point of a configuration that may be partial; what is missing is drawn from the prior.
  [[nodiscard]] Point point(const Value& partial, Random& random) const;
  /// The entries that a partial configuration gives; not-a-number elsewhere.
  [[nodiscard]] Point partial_point(const Value& partial) const;

  /// Partial configurations that are to be tried first.
  [[nodiscard]] std::span<const Value> starting_points() const noexcept;

  /// What the space consists of, as JSON: parameters with their domains, constants, functions and
  /// rules. Equal outlines mean that results of one space are results of the other.
  [[nodiscard]] std::string outline() const;

 private:
  friend class Builder;
  struct Body;
  explicit Space(std::unique_ptr<const Body> body);
  std::unique_ptr<const Body> body_;
};

/// Space::Builder().add("lr", loguniform(1e-4, 1e-1)).add("model/units", choice({32, 64}))
///     .condition("momentum", equals("optimizer", "sgd")).build();
class Space::Builder {
 public:
  Builder();
  explicit Builder(Spec spec);
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder();

  /// Adds a leaf or a subtree; dictionaries on the way are made. Throws already_exists.
  Builder& add(std::string_view path, Spec spec);
  /// The parameter (or everything below the path) exists only if the clause holds. Several
  /// conditions on one path must all hold.
  Builder& condition(std::string path, Clause clause);
  /// No point may fulfil the clause.
  Builder& forbid(Clause clause);
  Builder& constraint(ConstraintFunction function);
  Builder& starting_point(Value partial);

  /// Throws invalid_argument naming the path and the rule. The builder is empty afterwards.
  [[nodiscard]] std::shared_ptr<const Space> build();

 private:
  struct Draft;
  std::unique_ptr<Draft> draft_;
};

}  // namespace kolo::search

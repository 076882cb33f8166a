// What is searched: hyperparameters with their ranges, conditions and starting points. The names
// and rules are DeepHyper's.
//
//   hps::HpProblem problem;
//   problem.add_hyperparameter({1, 10}, "layers");                     // 1 … 10, whole numbers
//   problem.add_hyperparameter({1e-4, 1e-1, "log-uniform"}, "lr", 0.01);
//   problem.add_hyperparameter({"sgd", "adam"}, "optimizer");          // no order
//   problem.add_hyperparameter({8, 16, 32, 64}, "batch_size");         // an order
//   problem.add_hyperparameter({0.0, 1.0}, "momentum");
//   problem.add_condition("momentum", search::equals("optimizer", "sgd"));
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/search/clause.h"
#include "kolo/search/domain.h"
#include "kolo/search/space.h"
#include "kolo/search/value.h"

namespace kolo::hps {

using search::Value;

/// A normal distribution cut off at its ends. Whole numbers if mu, lower and upper are written so.
struct Normal {
  Value mu = 0.0, sigma = 1.0;
  Value lower{}, upper{};  ///< nothing = no end
};

/// What one hyperparameter may be, as add_hyperparameter takes it:
///
/// | written                         | means                                            |
/// |---------------------------------|--------------------------------------------------|
/// | {1, 10}                         | whole numbers, both ends included                |
/// | {0.0, 1.0}                      | numbers, both ends included (one float is enough)|
/// | {1, 10, "log-uniform"}          | the same with a prior; "uniform" is the default  |
/// | {"a", "b"}, {true, false}       | categorical: some are no numbers                 |
/// | {8, 16, 32}                     | ordinal: three numbers or more                   |
/// | Value::List{8, 16}              | a list whatever its length: ordinal here         |
/// | 7                               | a constant                                       |
/// | {{"mu", 0.0}, {"sigma", 1.0},   | normal; also Normal{0.0, 1.0, -2.0, 2.0}         |
/// |  {"lower", -2.0}, {"upper", 2.0}}|                                                 |
/// | search::quniform(0, 1, 0.25) …  | that domain                                      |
class HpValue {
 public:
  HpValue(std::initializer_list<Value> braces);
  HpValue(std::initializer_list<Value::Dict::value_type> normal);
  HpValue(Value::List list);
  HpValue(Normal normal);
  HpValue(search::Domain domain) : spec_(std::move(domain)) {}
  HpValue(search::Spec spec) : spec_(std::move(spec)) {}
  /// A constant.
  template <class T>
  requires(std::constructible_from<Value, T> && !std::same_as<T, Value::List> &&
           !std::same_as<T, HpValue> && !std::same_as<T, search::Spec>) HpValue(T constant)
      : HpValue(search::Spec(Value(std::move(constant)))) {}

  [[nodiscard]] const search::Spec& spec() const noexcept { return spec_; }

 private:
  search::Spec spec_;
};

/// A value of its own: copies are independent. One thread at a time; what space() returns may be
/// shared.
class HpProblem {
 public:
  struct Hyperparameter {
    HpValue value;
    std::string name;
    std::optional<Value> default_value{};
  };

  HpProblem() = default;

  /// Adds one; a name with slashes ("model/units") is a path into nested dictionaries. Returns
  /// what was added. Throws already_exists, or invalid_argument naming hyperparameter and rule.
  search::Spec add_hyperparameter(const HpValue& value, std::string_view name,
                                  std::optional<Value> default_value = std::nullopt);
  void add_hyperparameters(const std::vector<Hyperparameter>& several);

  /// The child (or everything below it) exists only if the clause holds. Several conditions on
  /// one child must all hold. Throws invalid_argument.
  void add_condition(std::string child, search::Clause clause);
  void add_conditions(std::vector<std::pair<std::string, search::Clause>> several);
  /// No configuration may fulfil the clause.
  void add_forbidden_clause(search::Clause clause);
  /// Evaluated first; what it leaves out is drawn. Throws invalid_argument.
  void add_starting_point(Value values);
  /// False means that the configuration must not be tried.
  void set_constraint_fn(search::ConstraintFunction function);
  /// How many numbers a run answers; 1 unless said.
  void set_objectives(std::size_t count);

  /// Built anew after a change. Throws invalid_argument when there is nothing in it.
  [[nodiscard]] std::shared_ptr<const search::Space> space() const;
  [[nodiscard]] std::size_t objectives() const noexcept { return objectives_; }
  [[nodiscard]] const std::vector<Value>& starting_points() const noexcept {
    return starting_points_;
  }
  /// Paths in the order of the space (sorted), constants included.
  [[nodiscard]] std::vector<std::string> hyperparameter_names() const;

  /// The default values; without one: the middle of a range (of its logarithm, with a log prior),
  /// the mean of a normal, the first of a list. What is inactive is absent. Throws
  /// failed_precondition when that configuration is forbidden.
  [[nodiscard]] Value default_configuration() const;
  /// Throws invalid_argument, naming path and rule, unless the problem allows the configuration.
  void check_configuration(const Value& configuration) const;

  /// As text: {"kolo_problem": 1, "space": …, "default_values": …, "objectives": …}. Throws
  /// unsupported when there are functions in it.
  [[nodiscard]] std::string to_json() const;
  /// That text, or a space alone as docs/search.md describes it. `origin` is named in errors.
  static HpProblem from_json(std::string_view text, std::string_view origin = "the problem");
  static HpProblem from_yaml(std::string_view text, std::string_view origin = "the problem");

 private:
  friend struct ProblemAccess;

  search::Spec spec_{search::Spec::Dict()};
  std::vector<std::pair<std::string, search::Clause>> conditions_;
  std::vector<search::Clause> forbidden_;
  std::vector<Value> starting_points_;
  search::ConstraintFunction constraint_;
  std::map<std::string, Value, std::less<>> default_values_;
  std::size_t objectives_ = 1;
  mutable std::shared_ptr<const search::Space> space_;  // null = to be built
};

}  // namespace kolo::hps

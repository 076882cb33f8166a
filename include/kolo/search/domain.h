// What a user writes to describe a search space: domains at the leaves of dictionaries and lists.
//
//   Spec spec{{"lr", loguniform(1e-4, 1e-1)},
//             {"model", Spec{{"units", choice({32, 64})}, {"bias", true}}}};
//
// Names, ranges and checks are Ray Tune's; real, integer, ordinal, categorical and normal are
// DeepHyper's. Nothing is checked here: Space names the path and the rule when it is built.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kolo/random.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// The configuration that a function of sample_from may read while it is being made. Valid during
/// the call only.
class ConfigView {
 public:
  virtual ~ConfigView() = default;
  /// The value at a path. Where that is a function not evaluated yet, this one is put off until it
  /// is. Throws not_found.
  [[nodiscard]] virtual const Value& at(std::string_view path) const = 0;
  /// True unless the path leads nowhere or to an inactive parameter.
  [[nodiscard]] virtual bool contains(std::string_view path) const = 0;
  /// The names in the dictionary at a path, also of values that are not known yet. Null if there is
  /// something else.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> names_in(
      std::string_view path) const = 0;
  /// A random number in [0, 1) from the stream of the trial.
  virtual double random() const = 0;
};

using SampleFunction = std::function<Value(const ConfigView&)>;

enum class Primitive {
  uniform,
  quniform,
  loguniform,
  qloguniform,
  randn,
  qrandn,
  randint,
  qrandint,
  lograndint,
  qlograndint,
  real,
  integer,
  normal,
  normal_integer,
  choice,
  ordinal,
  categorical,
  grid_search,
  sample_from,
};

std::string_view to_string(Primitive primitive) noexcept;

enum class Prior { uniform, log_uniform };

class Spec;

/// One leaf as it was written. Make it with the functions below.
struct Domain {
  Primitive primitive = Primitive::uniform;
  double low = 0, high = 0;
  double quantum = 0;
  double mean = 0, sd = 1;
  Prior prior = Prior::uniform;
  /// Shared, so that a choice of a million is cheap to pass around.
  std::shared_ptr<const std::vector<Value>> choices;
  std::vector<double> weights;                       ///< of categorical; empty = all the same
  std::shared_ptr<const std::vector<Spec>> entries;  ///< of grid_search
  SampleFunction function;                           ///< of sample_from
  std::string text;                                  ///< of {"eval": …}, for messages
};

/// Float in [low, high).
Domain uniform(double low, double high);
/// Multiples of q in [low, high], which must be multiples themselves.
Domain quniform(double low, double high, double q);
/// Float in [low, high), uniform in its logarithm; low > 0.
Domain loguniform(double low, double high);
Domain qloguniform(double low, double high, double q);
/// Normal, unbounded.
Domain randn(double mean = 0, double sd = 1);
Domain qrandn(double mean, double sd, double q);
/// Integer in [low, high).
Domain randint(double low, double high);
/// Multiples of q in [low, high]; with q = 1 it is randint, which excludes high (as Tune does).
Domain qrandint(double low, double high, double q = 1);
/// Integer in [low, high), uniform in its logarithm.
Domain lograndint(double low, double high);
Domain qlograndint(double low, double high, double q);
/// Float in [low, high].
Domain real(double low, double high, Prior prior = Prior::uniform);
/// Integer in [low, high], both ends included.
Domain integer(double low, double high, Prior prior = Prior::uniform);
/// Normal, cut off at the ends.
Domain normal(double mean, double sd, double low = -std::numeric_limits<double>::infinity(),
              double high = std::numeric_limits<double>::infinity());
Domain normal_integer(double mean, double sd, double low, double high);
/// One of the values, which have no order.
Domain choice(std::vector<Value> values);
Domain choice(std::shared_ptr<const std::vector<Value>> values);
/// The same with probabilities in proportion to the weights.
Domain categorical(std::vector<Value> values, std::vector<double> weights = {});
/// One of the values, whose order means something.
Domain ordinal(std::vector<Value> values);
/// Every value is tried by the sampler `grid`; others treat it as a choice. Entries are
/// constants or sample_from.
Domain grid_search(std::vector<Spec> entries);
/// The value of a function, which may read other values of the same configuration.
Domain sample_from(SampleFunction function);
Domain sample_from(std::function<Value()> function);

/// A tree: constants and domains inside dictionaries and lists.
class Spec {
 public:
  using List = std::vector<Spec>;
  using Dict = std::map<std::string, Spec, std::less<>>;

  Spec(Domain domain) : data_(std::move(domain)) {}
  Spec(Value constant) : data_(std::move(constant)) {}
  /// Whatever a Value can be made of.
  template <class T>
  requires(std::constructible_from<Value, T> && !std::same_as<T, Value> && !std::same_as<T, Spec>)
      Spec(T constant)
      : data_(std::in_place_type<Value>, std::move(constant)) {}
  Spec(List items) : data_(std::move(items)) {}
  Spec(Dict items) : data_(std::move(items)) {}
  Spec(std::initializer_list<Dict::value_type> items) : data_(Dict(items)) {}

  using Data = std::variant<Value, Domain, List, Dict>;
  [[nodiscard]] const Data& data() const noexcept { return data_; }
  Data& data() noexcept { return data_; }

 private:
  Data data_;
};

}  // namespace kolo::search

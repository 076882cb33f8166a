// A domain is checked by the rules of its primitive and normalised into a Parameter: the ends of
// its range, the number of its values (0 means that there are too many to count) and the prior. The
// other functions use that form alone: sample_entry draws, nearest_entry rounds to a value of the
// domain, entry_value and value_entry convert between numbers and the values that users see.
#include "search/space/parameter.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::search {
namespace {

constexpr double kLargestInteger = 9007199254740992;  // 2^53: beyond it doubles skip integers

struct Rules {
  const std::string& path;
  const Domain& domain;

  void require(bool holds, const char* rule) const {
    if (!holds)
      throw_error(ErrorCode::invalid_argument, "{}: {}: {}", path, describe(domain), rule);
  }

  void require_range() const {
    require(std::isfinite(domain.low) && std::isfinite(domain.high), "the ends must be finite");
    require(domain.low <= domain.high, "the lower end is above the upper one");
    require(std::isfinite(domain.high - domain.low), "the range is too wide for a double");
  }
  void require_positive() const {
    require(domain.low > 0 && domain.high > 0, "a logarithmic range must be above 0");
  }
  void require_integers() const {
    for (const double end : {domain.low, domain.high})
      require(end == std::floor(end) && std::abs(end) <= kLargestInteger,
              "the ends must be whole numbers of at most 2^53");
  }
  void require_quantum() const {
    require(std::isfinite(domain.quantum) && domain.quantum > 0, "q must be above 0");
  }
  void require_bell() const {
    require(std::isfinite(domain.mean), "the mean must be finite");
    require(std::isfinite(domain.sd) && domain.sd > 0, "the deviation must be finite and above 0");
  }
  [[nodiscard]] bool is_multiple(double number) const {
    const double steps = number / domain.quantum;
    return std::abs(steps - std::round(steps)) <= 1e-9 * std::max(1.0, std::abs(steps));
  }
};

void set_real(Parameter& parameter, const Rules& rules) {
  rules.require_range();
  if (parameter.log) rules.require_positive();
  if (parameter.quantum > 0) {
    rules.require(rules.is_multiple(parameter.low) && rules.is_multiple(parameter.high),
                  "both ends must be multiples of q");
    const double steps = std::round((parameter.high - parameter.low) / parameter.quantum);
    parameter.low = std::round(parameter.low / parameter.quantum) * parameter.quantum;
    parameter.high = std::round(parameter.high / parameter.quantum) * parameter.quantum;
    if (steps < kLargestInteger) parameter.cardinality = static_cast<std::uint64_t>(steps) + 1;
  } else if (parameter.low == parameter.high) {
    parameter.cardinality = 1;
  }
}

void set_integer(Parameter& parameter, const Rules& rules, bool upper_excluded) {
  parameter.kind = Parameter::Kind::integer;
  rules.require_range();
  rules.require_integers();
  if (parameter.log) rules.require_positive();
  if (upper_excluded) {
    rules.require(parameter.low < parameter.high, "no whole number is in this range");
    parameter.high -= 1;
  }
  double step = 1;
  if (parameter.quantum > 0) {
    step = parameter.quantum;
    rules.require(step == std::floor(step), "q must be a whole number");
    parameter.low = std::ceil(parameter.low / step) * step;
    parameter.high = std::floor(parameter.high / step) * step;
    rules.require(parameter.low <= parameter.high, "no multiple of q is in this range");
    if (parameter.log) rules.require(parameter.low > 0, "a logarithmic range must be above 0");
  }
  parameter.cardinality = static_cast<std::uint64_t>((parameter.high - parameter.low) / step) + 1;
}

void set_choices(Parameter& parameter, const Rules& rules, Parameter::Kind kind) {
  parameter.kind = kind;
  parameter.choices = rules.domain.choices;
  rules.require(parameter.choices && !parameter.choices->empty(), "there is nothing to choose");
  const std::size_t count = parameter.choices->size();
  parameter.low = 0;
  parameter.high = static_cast<double>(count - 1);
  parameter.cardinality = count;
  if (rules.domain.weights.empty()) return;
  rules.require(rules.domain.weights.size() == count, "there must be one weight for each value");
  std::vector<double> cumulative;
  double sum = 0;
  for (const double weight : rules.domain.weights) {
    rules.require(std::isfinite(weight) && weight >= 0, "weights must be finite and not negative");
    cumulative.push_back(sum += weight);
  }
  rules.require(sum > 0 && std::isfinite(sum), "some weight must be above 0");
  parameter.cumulative_weights = std::make_shared<const std::vector<double>>(std::move(cumulative));
}

// Numbers in ascending or descending order are worth telling models about.
bool is_ordered(const std::vector<Value>& values) {
  if (!std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_number(); }))
    return false;
  return std::is_sorted(values.begin(), values.end()) ||
         std::is_sorted(values.rbegin(), values.rend());
}

void set_grid(Parameter& parameter, const Rules& rules) {
  rules.require(rules.domain.entries && !rules.domain.entries->empty(), "the grid has no values");
  std::vector<Value> values;
  bool has_functions = false;
  for (const Spec& entry : *rules.domain.entries) {
    if (const Value* constant = std::get_if<Value>(&entry.data())) {
      values.push_back(*constant);
      continue;
    }
    const Domain* inner = std::get_if<Domain>(&entry.data());
    rules.require(inner != nullptr && inner->primitive == Primitive::sample_from,
                  "a grid holds constants and sample_from only");
    has_functions = true;
    values.emplace_back();
  }
  parameter.kind = !has_functions && is_ordered(values) ? Parameter::Kind::ordinal
                                                        : Parameter::Kind::categorical;
  parameter.grid = true;
  parameter.low = 0;
  parameter.high = static_cast<double>(values.size() - 1);
  parameter.cardinality = values.size();
  parameter.choices = std::make_shared<const std::vector<Value>>(std::move(values));
}

double quantised(const Parameter& parameter, double value) {
  if (parameter.quantum > 0) return std::round(value / parameter.quantum) * parameter.quantum;
  return parameter.kind == Parameter::Kind::real ? value : std::round(value);
}

double sample_choice(const Parameter& parameter, Random& random) {
  if (!parameter.cumulative_weights)
    return static_cast<double>(random.below(parameter.cardinality));
  const auto& cumulative = *parameter.cumulative_weights;
  const double at = random.uniform() * cumulative.back();
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), at);
  return static_cast<double>(std::min<std::ptrdiff_t>(
      found - cumulative.begin(), static_cast<std::ptrdiff_t>(cumulative.size()) - 1));
}

double sample_bell(const Parameter& parameter, Random& random) {
  // A cut far out in the tail is rare; there the nearest end stands in.
  constexpr int kTries = 1000;
  double value = parameter.mean;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    value = parameter.mean + parameter.sd * random.normal();
    if (value >= parameter.low && value <= parameter.high) break;
  }
  return value;
}

}  // namespace

Parameter make_parameter(const std::string& path, const Domain& domain) {
  const Rules rules{path, domain};
  Parameter parameter;
  parameter.path = path;
  parameter.domain = describe(domain);
  parameter.low = domain.low;
  parameter.high = domain.high;
  parameter.quantum = domain.quantum;
  parameter.mean = domain.mean;
  parameter.sd = domain.sd;
  switch (domain.primitive) {
    case Primitive::quniform:
    case Primitive::qloguniform:
    case Primitive::qrandn:
    case Primitive::qrandint:
    case Primitive::qlograndint: rules.require_quantum(); break;
    default: break;
  }
  switch (domain.primitive) {
    case Primitive::loguniform:
    case Primitive::qloguniform:
    case Primitive::lograndint:
    case Primitive::qlograndint: parameter.log = true; break;
    default: parameter.log = domain.prior == Prior::log_uniform; break;
  }
  switch (domain.primitive) {
    case Primitive::uniform:
    case Primitive::quniform:
    case Primitive::loguniform:
    case Primitive::qloguniform:
    case Primitive::real: set_real(parameter, rules); break;
    case Primitive::randint:
    case Primitive::lograndint: set_integer(parameter, rules, true); break;
    case Primitive::qrandint:
    case Primitive::qlograndint: set_integer(parameter, rules, domain.quantum == 1); break;
    case Primitive::integer: set_integer(parameter, rules, false); break;
    case Primitive::randn:
    case Primitive::qrandn:
    case Primitive::normal:
      rules.require_bell();
      rules.require(domain.low <= domain.high, "the lower end is above the upper one");
      parameter.normal = true;
      break;
    case Primitive::normal_integer:
      rules.require_bell();
      set_integer(parameter, rules, false);
      parameter.normal = true;
      break;
    case Primitive::choice:
    case Primitive::categorical: set_choices(parameter, rules, Parameter::Kind::categorical); break;
    case Primitive::ordinal: set_choices(parameter, rules, Parameter::Kind::ordinal); break;
    case Primitive::grid_search: set_grid(parameter, rules); break;
    case Primitive::sample_from: KOLO_CHECK(false);
  }
  return parameter;
}

std::string describe(const Domain& domain) {
  std::string text = fmt::format("{}(", to_string(domain.primitive));
  auto add = [&, separator = ""](const std::string& argument) mutable {
    text += separator + argument;
    separator = ", ";
  };
  constexpr std::size_t kShown = 5;
  switch (domain.primitive) {
    case Primitive::choice:
    case Primitive::categorical:
    case Primitive::ordinal:
      for (std::size_t i = 0; domain.choices && i < domain.choices->size(); ++i) {
        if (i == kShown) {
          add(fmt::format("… {} values", domain.choices->size()));
          break;
        }
        add((*domain.choices)[i].to_string());
      }
      break;
    case Primitive::grid_search:
      add(fmt::format("{} values", domain.entries ? domain.entries->size() : 0));
      break;
    case Primitive::sample_from: add(domain.text); break;
    default:
      if (domain.primitive == Primitive::randn || domain.primitive == Primitive::qrandn ||
          domain.primitive == Primitive::normal || domain.primitive == Primitive::normal_integer) {
        add(fmt::format("{}", domain.mean));
        add(fmt::format("{}", domain.sd));
      }
      if (domain.primitive != Primitive::randn && domain.primitive != Primitive::qrandn) {
        add(fmt::format("{}", domain.low));
        add(fmt::format("{}", domain.high));
      }
      if (domain.quantum != 0) add(fmt::format("{}", domain.quantum));
      if (domain.prior == Prior::log_uniform) add("log-uniform");
  }
  return text + ')';
}

double sample_entry(const Parameter& parameter, Random& random) {
  if (!parameter.is_number()) return sample_choice(parameter, random);
  double value = 0;
  if (parameter.normal) {
    value = sample_bell(parameter, random);
  } else if (parameter.kind == Parameter::Kind::real) {
    value = parameter.log
                ? std::exp(random.uniform(std::log(parameter.low), std::log(parameter.high)))
                : random.uniform(parameter.low, parameter.high);
  } else if (parameter.log) {
    // Each integer k stands for [k, k + 1), as Tune's floor makes it.
    value =
        std::floor(std::exp(random.uniform(std::log(parameter.low), std::log(parameter.high + 1))));
  } else {
    value = parameter.low + static_cast<double>(random.below(
                                static_cast<std::uint64_t>(parameter.high - parameter.low) + 1));
  }
  return nearest_entry(parameter, value);
}

double nearest_entry(const Parameter& parameter, double value) {
  if (std::isnan(value)) return value;
  return quantised(parameter, std::clamp(value, parameter.low, parameter.high));
}

Value entry_value(const Parameter& parameter, double entry) {
  if (parameter.kind == Parameter::Kind::real) return entry;
  if (parameter.kind == Parameter::Kind::integer) return static_cast<std::int64_t>(entry);
  return (*parameter.choices)[static_cast<std::size_t>(entry)];
}

double value_entry(const Parameter& parameter, const Value& value) {
  const auto refuse = [&](const char* rule) {
    throw_error(ErrorCode::invalid_argument, "{}: {} {} {}", parameter.path, value.to_string(),
                rule, parameter.domain);
  };
  if (!parameter.is_number()) {
    const auto& choices = *parameter.choices;
    const auto found = std::find(choices.begin(), choices.end(), value);
    if (found == choices.end()) refuse("is not one of");
    return static_cast<double>(found - choices.begin());
  }
  if (!value.is_number()) refuse("is not a number, as needed by");
  const double number = value.as_number();
  if (std::isnan(number)) refuse("is not in");
  if (parameter.kind == Parameter::Kind::integer && number != std::floor(number))
    refuse("is not a whole number, as needed by");
  // Both ends are valid, also where sampling never gives the upper one.
  const double slack = parameter.kind == Parameter::Kind::real
                           ? 1e-12 * std::max(std::abs(parameter.low), std::abs(parameter.high))
                           : 0;
  if (number < parameter.low - (std::isfinite(slack) ? slack : 0) ||
      number > parameter.high + (std::isfinite(slack) ? slack : 0))
    refuse("is outside of");
  const double entry = nearest_entry(parameter, number);
  if (parameter.quantum > 0 && std::abs(entry - number) > 1e-9 * std::max(1.0, std::abs(number)))
    refuse("is not a multiple of the step of");
  return entry;
}

}  // namespace kolo::search

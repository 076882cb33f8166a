// DeepHyper's way to write what a hyperparameter may be.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "kolo/hps/problem.h"

namespace kolo::hps {
namespace {

using search::Prior;
using search::Spec;

Prior read_prior(const Value& text) {
  if (text.as_string() == "uniform") return Prior::uniform;
  if (text.as_string() == "log-uniform") return Prior::log_uniform;
  throw_error(ErrorCode::invalid_argument,
              "prior '{}' is unknown; known: uniform, log-uniform (two numbers and a text are a "
              "range with its prior; write Value::List{{…}} for a list of these three)",
              text.as_string());
}

Spec read_list(Value::List values) {
  if (values.empty())
    throw_error(ErrorCode::invalid_argument, "a hyperparameter needs at least one value");
  const bool numbers =
      std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_number(); });
  return numbers ? search::ordinal(std::move(values)) : search::categorical(std::move(values));
}

Spec read_braces(std::initializer_list<Value> braces) {
  const Value* const items = braces.begin();
  const bool range = braces.size() >= 2 && items[0].is_number() && items[1].is_number() &&
                     (braces.size() == 2 || (braces.size() == 3 && items[2].is_string()));
  if (!range) return read_list(braces);
  const Prior prior = braces.size() == 3 ? read_prior(items[2]) : Prior::uniform;
  const double low = items[0].as_number(), high = items[1].as_number();
  return items[0].is_integer() && items[1].is_integer() ? search::integer(low, high, prior)
                                                        : search::real(low, high, prior);
}

Spec read_normal(const Normal& normal) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  const auto end = [](const Value& value, double otherwise) {
    return value.is_nothing() ? otherwise : value.as_number();
  };
  const double mu = normal.mu.as_number(), sigma = normal.sigma.as_number();
  const double low = end(normal.lower, -kNoEnd), high = end(normal.upper, kNoEnd);
  // A deviation of 2.5 around whole numbers is nothing unusual, so sigma does not decide.
  if (normal.mu.is_integer() && normal.lower.is_integer() && normal.upper.is_integer())
    return search::normal_integer(mu, sigma, low, high);
  return search::normal(mu, sigma, low, high);
}

Normal read_dictionary(std::initializer_list<Value::Dict::value_type> items) {
  Normal normal;
  bool has_mu = false, has_sigma = false;
  for (const auto& [key, value] : items) {
    if (key == "mu")
      normal.mu = value, has_mu = true;
    else if (key == "sigma")
      normal.sigma = value, has_sigma = true;
    else if (key == "lower")
      normal.lower = value;
    else if (key == "upper")
      normal.upper = value;
    else
      throw_error(ErrorCode::invalid_argument,
                  "a normal distribution has no '{}'; known: mu, sigma, lower, upper", key);
  }
  if (!has_mu || !has_sigma)
    throw_error(ErrorCode::invalid_argument, "a normal distribution needs mu and sigma");
  return normal;
}

}  // namespace

HpValue::HpValue(std::initializer_list<Value> braces) : spec_(read_braces(braces)) {}
HpValue::HpValue(std::initializer_list<Value::Dict::value_type> normal)
    : HpValue(read_dictionary(normal)) {}
HpValue::HpValue(Value::List list) : spec_(read_list(std::move(list))) {}
HpValue::HpValue(Normal normal) : spec_(read_normal(normal)) {}

}  // namespace kolo::hps

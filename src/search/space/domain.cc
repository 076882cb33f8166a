#include "kolo/search/domain.h"

#include <utility>

namespace kolo::search {
namespace {

Domain range(Primitive primitive, double low, double high, double quantum = 0) {
  Domain domain;
  domain.primitive = primitive;
  domain.low = low;
  domain.high = high;
  domain.quantum = quantum;
  return domain;
}

Domain bell(Primitive primitive, double mean, double sd, double low, double high, double quantum) {
  Domain domain = range(primitive, low, high, quantum);
  domain.mean = mean;
  domain.sd = sd;
  return domain;
}

Domain pick(Primitive primitive, std::vector<Value> values) {
  Domain domain;
  domain.primitive = primitive;
  domain.choices = std::make_shared<const std::vector<Value>>(std::move(values));
  return domain;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

std::string_view to_string(Primitive primitive) noexcept {
  switch (primitive) {
    case Primitive::uniform: return "uniform";
    case Primitive::quniform: return "quniform";
    case Primitive::loguniform: return "loguniform";
    case Primitive::qloguniform: return "qloguniform";
    case Primitive::randn: return "randn";
    case Primitive::qrandn: return "qrandn";
    case Primitive::randint: return "randint";
    case Primitive::qrandint: return "qrandint";
    case Primitive::lograndint: return "lograndint";
    case Primitive::qlograndint: return "qlograndint";
    case Primitive::real: return "real";
    case Primitive::integer: return "integer";
    case Primitive::normal: return "normal";
    case Primitive::normal_integer: return "normal_integer";
    case Primitive::choice: return "choice";
    case Primitive::ordinal: return "ordinal";
    case Primitive::categorical: return "categorical";
    case Primitive::grid_search: return "grid_search";
    case Primitive::sample_from: return "sample_from";
  }
  return "?";
}

Domain uniform(double low, double high) { return range(Primitive::uniform, low, high); }
Domain quniform(double low, double high, double q) {
  return range(Primitive::quniform, low, high, q);
}
Domain loguniform(double low, double high) { return range(Primitive::loguniform, low, high); }
Domain qloguniform(double low, double high, double q) {
  return range(Primitive::qloguniform, low, high, q);
}
Domain randn(double mean, double sd) {
  return bell(Primitive::randn, mean, sd, -kInfinity, kInfinity, 0);
}
Domain qrandn(double mean, double sd, double q) {
  return bell(Primitive::qrandn, mean, sd, -kInfinity, kInfinity, q);
}
Domain randint(double low, double high) { return range(Primitive::randint, low, high); }
Domain qrandint(double low, double high, double q) {
  return range(Primitive::qrandint, low, high, q);
}
Domain lograndint(double low, double high) { return range(Primitive::lograndint, low, high); }
Domain qlograndint(double low, double high, double q) {
  return range(Primitive::qlograndint, low, high, q);
}

Domain real(double low, double high, Prior prior) {
  Domain domain = range(Primitive::real, low, high);
  domain.prior = prior;
  return domain;
}

Domain integer(double low, double high, Prior prior) {
  Domain domain = range(Primitive::integer, low, high);
  domain.prior = prior;
  return domain;
}

Domain normal(double mean, double sd, double low, double high) {
  return bell(Primitive::normal, mean, sd, low, high, 0);
}
Domain normal_integer(double mean, double sd, double low, double high) {
  return bell(Primitive::normal_integer, mean, sd, low, high, 0);
}

Domain choice(std::vector<Value> values) { return pick(Primitive::choice, std::move(values)); }
Domain choice(std::shared_ptr<const std::vector<Value>> values) {
  Domain domain;
  domain.primitive = Primitive::choice;
  domain.choices = std::move(values);
  return domain;
}
Domain ordinal(std::vector<Value> values) { return pick(Primitive::ordinal, std::move(values)); }
Domain categorical(std::vector<Value> values, std::vector<double> weights) {
  Domain domain = pick(Primitive::categorical, std::move(values));
  domain.weights = std::move(weights);
  return domain;
}

Domain grid_search(std::vector<Spec> entries) {
  Domain domain;
  domain.primitive = Primitive::grid_search;
  domain.entries = std::make_shared<const std::vector<Spec>>(std::move(entries));
  return domain;
}

Domain sample_from(SampleFunction function) {
  Domain domain;
  domain.primitive = Primitive::sample_from;
  domain.function = std::move(function);
  return domain;
}
Domain sample_from(std::function<Value()> function) {
  return sample_from(
      SampleFunction([inner = std::move(function)](const ConfigView&) { return inner(); }));
}

}  // namespace kolo::search

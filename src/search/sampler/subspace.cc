// The chosen parameters become a space of their own, with the same domains, under names that keep
// their order. Forbidden clauses of the whole space may mention parameters outside of it; a part is
// therefore accepted if some completion of it is, tried with a random stream that depends on the
// part alone.
#include "search/sampler/subspace.h"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::search {
namespace {

constexpr int kDrawTries = 64;

/// A domain with the same values and the same distribution.
Domain domain_of(const Parameter& parameter) {
  const Prior prior = parameter.log ? Prior::log_uniform : Prior::uniform;
  switch (parameter.kind) {
    case Parameter::Kind::ordinal: return ordinal(*parameter.choices);
    case Parameter::Kind::categorical: {
      if (!parameter.cumulative_weights) return choice(parameter.choices);
      std::vector<double> weights;
      double before = 0;
      for (const double sum : *parameter.cumulative_weights) {
        weights.push_back(sum - before);
        before = sum;
      }
      return categorical(*parameter.choices, std::move(weights));
    }
    case Parameter::Kind::integer:
      if (parameter.normal)
        return normal_integer(parameter.mean, parameter.sd, parameter.low, parameter.high);
      if (parameter.quantum > 1)
        return parameter.log ? qlograndint(parameter.low, parameter.high, parameter.quantum)
                             : qrandint(parameter.low, parameter.high, parameter.quantum);
      return integer(parameter.low, parameter.high, prior);
    case Parameter::Kind::real:
      if (parameter.normal)
        return parameter.quantum > 0
                   ? qrandn(parameter.mean, parameter.sd, parameter.quantum)
                   : normal(parameter.mean, parameter.sd, parameter.low, parameter.high);
      if (parameter.quantum > 0)
        return parameter.log ? qloguniform(parameter.low, parameter.high, parameter.quantum)
                             : quniform(parameter.low, parameter.high, parameter.quantum);
      return real(parameter.low, parameter.high, prior);
  }
  throw_error(ErrorCode::internal, "subspace: {} is of no known kind", parameter.path);
}

/// Names that sort as the parameters of the whole space do.
std::string name_of(std::size_t place) { return fmt::format("{:09}", place); }

std::optional<Point> complete(const Space& whole, const std::vector<std::size_t>& chosen,
                              const Point& part) {
  Random random(hash_point(part));
  for (int attempt = 0; attempt < kDrawTries; ++attempt) {
    Point point(whole.size());
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = whole.sample_parameter(i, random);
    for (std::size_t k = 0; k < chosen.size(); ++k) point[chosen[k]] = part[k];
    if (whole.settle(point, random)) return point;
  }
  return std::nullopt;
}

}  // namespace

Subspace::Subspace(std::shared_ptr<const Space> whole, std::vector<std::size_t> chosen)
    : whole_(std::move(whole)), chosen_(std::move(chosen)) {
  Space::Builder builder;
  for (const std::size_t place : chosen_)
    builder.add(name_of(place), domain_of(whole_->parameters()[place]));
  if (whole_->has_refusals())
    builder.constraint([whole = whole_, chosen = chosen_](const Value& config) {
      Point part;
      for (const std::size_t place : chosen)
        part.push_back(whole->entry_of(place, config.at_path(name_of(place))));
      return search::complete(*whole, chosen, part).has_value();
    });
  part_ = builder.build();
}

Point Subspace::part_of(const Point& point) const {
  Point part;
  part.reserve(chosen_.size());
  for (const std::size_t place : chosen_) part.push_back(point[place]);
  return part;
}

void Subspace::put(const Point& part, Point& point) const {
  for (std::size_t k = 0; k < chosen_.size(); ++k) point[chosen_[k]] = part[k];
}

std::optional<Point> Subspace::complete(const Point& part) const {
  return search::complete(*whole_, chosen_, part);
}

bool Subspace::settle(const Point& part, Point& point, Random& random) const {
  put(part, point);
  return whole_->settle(point, random) && same_point(part_of(point), part);
}

}  // namespace kolo::search

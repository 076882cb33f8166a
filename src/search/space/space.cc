// Points are made in dependency order (a parameter after those that its conditions mention), so
// that each condition is decided before the parameters below it. Forbidden clauses and the
// constraint function can only refuse a whole point; sample() therefore draws again, up to
// kSampleTries times, and counts which rule refused how often to name it in the error.
#include "kolo/search/space.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/random.h"
#include "search/space/parameter.h"
#include "search/space/partial_config.h"
#include "search/space/space_body.h"

namespace kolo::search {
namespace {

constexpr int kSampleTries = 10'000;
constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

}  // namespace

bool same_point(const Point& left, const Point& right) noexcept {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

std::uint64_t hash_point(const Point& point) noexcept {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const double entry : point) {
    // -0.0 == 0.0, and every not-a-number is the same.
    const double plain = std::isnan(entry) ? kInactive : entry + 0.0;
    hash = (hash ^ std::bit_cast<std::uint64_t>(plain)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

Value Space::Body::config(const Point& point, Random* random) const {
  const IsAbsent is_absent = [&](const Node& node) {
    // Parameters carry their own mark; this is for what else lies below a condition.
    if (node.kind == Node::Kind::parameter) return std::isnan(point[node.parameter]);
    return std::any_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      return condition.path == node.path && !condition.clause.holds(point);
    });
  };
  return make_config(root, parameters, point, is_absent, random);
}

std::optional<std::size_t> Space::Body::refusal(const Point& point) const {
  for (std::size_t i = 0; i < forbidden.size(); ++i)
    if (forbidden[i].clause.holds(point)) return i;
  if (constraint && !constraint(config(point, nullptr))) return forbidden.size();
  return std::nullopt;
}

Space::Space(std::unique_ptr<const Body> body) : body_(std::move(body)) {}
Space::Space(Spec spec) : Space(std::move(const_cast<Space&>(*Builder(std::move(spec)).build()))) {}
Space::Space(Space&&) noexcept = default;
Space& Space::operator=(Space&&) noexcept = default;
Space::~Space() = default;

std::span<const Parameter> Space::parameters() const noexcept { return body_->parameters; }

std::optional<std::size_t> Space::find(std::string_view path) const {
  const auto found = body_->index.find(path);
  if (found == body_->index.end()) return std::nullopt;
  return found->second;
}

std::size_t Space::index_of(std::string_view path) const {
  if (const auto found = find(path)) return *found;
  std::vector<std::string_view> known;
  for (const auto& parameter : parameters()) known.push_back(parameter.path);
  throw_unknown_name("parameter", path, known);
}

std::span<const std::size_t> Space::dependency_order() const noexcept { return body_->order; }
bool Space::is_conditional(std::size_t parameter) const noexcept {
  return !body_->conditions_of[parameter].empty();
}
bool Space::has_conditions() const noexcept { return !body_->conditions.empty(); }
bool Space::has_refusals() const noexcept {
  return !body_->forbidden.empty() || body_->constraint != nullptr;
}
bool Space::has_functions() const noexcept { return body_->has_functions; }

std::vector<std::string> Space::varied_paths() const { return search::varied_paths(body_->root); }
bool Space::is_active(std::size_t parameter, const Point& point) const {
  return body_->is_active(parameter, point);
}

std::optional<std::uint64_t> Space::cardinality() const noexcept {
  std::uint64_t count = 1;
  for (const Parameter& parameter : parameters()) {
    if (parameter.cardinality == 0) return std::nullopt;
    if (__builtin_mul_overflow(count, parameter.cardinality, &count) || count >> 63 != 0)
      return std::nullopt;
  }
  return count;
}

double Space::sample_parameter(std::size_t parameter, Random& random) const {
  return sample_entry(body_->parameters[parameter], random);
}

Point Space::sample(Random& random) const {
  std::vector<std::uint64_t> refused(body_->forbidden.size() + 1, 0);
  for (int attempt = 0; attempt < kSampleTries; ++attempt) {
    Point point(size(), kInactive);
    for (const std::size_t i : body_->order)
      if (body_->is_active(i, point)) point[i] = sample_entry(body_->parameters[i], random);
    const auto refusal = body_->refusal(point);
    if (!refusal) return point;
    ++refused[*refusal];
  }
  const auto most =
      static_cast<std::size_t>(std::max_element(refused.begin(), refused.end()) - refused.begin());
  throw_error(ErrorCode::failed_precondition,
              "the space allows none of {} points drawn from it; {} of them are refused by {}",
              kSampleTries, refused[most],
              most < body_->forbidden.size()
                  ? fmt::format("the forbidden clause '{}'", body_->forbidden[most].text)
                  : "the constraint function");
}

bool Space::settle(Point& point, Random& random) const {
  point.resize(size(), kInactive);
  for (const std::size_t i : body_->order) {
    const Parameter& parameter = body_->parameters[i];
    if (!body_->is_active(i, point))
      point[i] = kInactive;
    else if (std::isnan(point[i]))
      point[i] = sample_entry(parameter, random);
    else
      point[i] = nearest_entry(parameter, point[i]);
  }
  return !body_->refusal(point);
}

bool Space::allows(const Point& point) const {
  if (point.size() != size()) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (body_->is_active(i, point) == std::isnan(point[i])) return false;
    if (!std::isnan(point[i]) && nearest_entry(body_->parameters[i], point[i]) != point[i])
      return false;
  }
  return !body_->refusal(point);
}

double Space::nearest(std::size_t parameter, double value) const {
  return nearest_entry(body_->parameters[parameter], value);
}

Value Space::config(const Point& point, Random& random) const {
  if (point.size() != size())
    throw_error(ErrorCode::invalid_argument,
                "the point has {} entries, but the space has {} parameters", point.size(), size());
  return body_->config(point, &random);
}

Value Space::value_of(std::size_t parameter, double entry) const {
  return std::isnan(entry) ? Value() : entry_value(body_->parameters[parameter], entry);
}

double Space::entry_of(std::size_t parameter, const Value& value) const {
  return value_entry(body_->parameters[parameter], value);
}

Point Space::point(const Value& config) const {
  Point point = entries_of_config(body_->root, body_->parameters, config);
  for (const std::size_t i : body_->order) {
    const bool active = body_->is_active(i, point);
    if (active && std::isnan(point[i]))
      throw_error(ErrorCode::invalid_argument, "{}: the configuration has no value for it",
                  body_->parameters[i].path);
    if (!active && !std::isnan(point[i]))
      throw_error(ErrorCode::invalid_argument,
                  "{}: the configuration has a value, but its condition does not hold",
                  body_->parameters[i].path);
  }
  return point;
}

Point Space::point(const Value& partial, Random& random) const {
  const Point given = entries_of_config(body_->root, body_->parameters, partial);
  const auto keeps_given = [&](const Point& point) {
    for (std::size_t i = 0; i < size(); ++i)
      if (!std::isnan(given[i]) && std::isnan(point[i])) return false;
    return true;
  };
  // What is drawn may be refused, or switch off something given: draw it again.
  for (int attempt = 0; attempt < kSampleTries; ++attempt) {
    Point point = given;
    if (settle(point, random) && keeps_given(point)) return point;
  }
  throw_error(ErrorCode::invalid_argument,
              "the configuration {} contradicts the rules of the space: no values for the other "
              "parameters make it valid",
              partial.to_string());
}

Point Space::partial_point(const Value& partial) const {
  return entries_of_config(body_->root, body_->parameters, partial);
}

std::span<const Value> Space::starting_points() const noexcept { return body_->starting_points; }

}  // namespace kolo::search

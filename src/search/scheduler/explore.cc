// The mutated parameters of a configuration are read into a Point of the space `mutations`, varied
// there, and written back; Space::settle keeps the values inside their domains and applies
// conditions. A variation that a forbidden clause refuses is drawn again.
#include "search/scheduler/explore.h"

#include <algorithm>
#include <cmath>

#include "search/space/path.h"

namespace kolo::search {
namespace {

double vary_choice(double index, const Parameter& parameter, Random& random) {
  double step = random.below(2) == 0 ? -1 : 1;
  return std::clamp(index + step, parameter.low, parameter.high);
}

double vary_number(double value, std::size_t i, const Space& space, const ExploreSettings& settings,
                   Random& random) {
  bool up = random.below(2) == 0;
  double varied = space.nearest(i, value * (up ? settings.factor_up : settings.factor_down));
  const Parameter& parameter = space.parameters()[i];
  if (varied != value || !parameter.is_discrete()) return varied;
  double step = parameter.quantum > 0 ? parameter.quantum : 1;
  return space.nearest(
      i, value + ((up ? settings.factor_up : settings.factor_down) > 1 ? step : -step));
}

/// Makes the dictionaries on the way. List items must exist: a space never makes lists longer.
void set_path(Value& config, std::string_view path, Value value) {
  Value* here = &config;
  for (PathWalk walk(path); !walk.done();) {
    std::string_view key = walk.next();
    if (here->is_list()) {
      auto index = list_index(key);
      if (!index || *index >= here->as_list().size()) return;
      here = &here->as_list()[*index];
    } else {
      if (!here->is_dict()) *here = Value::Dict{};
      here = &here->as_dict()[std::string(key)];
    }
  }
  *here = std::move(value);
}

void remove_path(Value& config, std::string_view path) {
  auto slash = path.rfind('/');
  std::string_view parent = slash == std::string_view::npos ? "" : path.substr(0, slash);
  std::string_view key = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const Value* found = config.find_path(parent);
  if (found == nullptr) return;
  if (found->is_list()) {
    set_path(config, path, {});  // absent items of a list are null
  } else if (found->is_dict()) {
    Value::Dict rest = found->as_dict();
    rest.erase(std::string(key));
    if (parent.empty())
      config = Value(std::move(rest));
    else
      set_path(config, parent, Value(std::move(rest)));
  }
}

}  // namespace

double entry_in(const Value& config, const Space& mutations, std::size_t i) {
  const Parameter& parameter = mutations.parameters()[i];
  const Value* value = config.find_path(parameter.path);
  if (value == nullptr) return std::nan("");
  if (parameter.is_number()) return value->is_number() ? value->as_number() : std::nan("");
  auto found = std::find(parameter.choices->begin(), parameter.choices->end(), *value);
  if (found == parameter.choices->end()) return std::nan("");
  return static_cast<double>(found - parameter.choices->begin());
}

Value with_point(Value config, const Space& mutations, const Point& point) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    const std::string& path = mutations.parameters()[i].path;
    if (std::isnan(point[i]))
      remove_path(config, path);
    else
      set_path(config, path, mutations.value_of(i, point[i]));
  }
  return config;
}

Value fill_missing(Value config, const Space& mutations, Random& random) {
  Point point = mutations.sample(random);
  for (std::size_t i = 0; i < point.size(); ++i)
    if (const double known = entry_in(config, mutations, i); !std::isnan(known)) point[i] = known;
  if (!mutations.settle(point, random)) return config;
  const Value drawn = mutations.config(point, random);
  for (const auto& path : mutations.varied_paths())
    if (const Value* value = drawn.find_path(path);
        value != nullptr && config.find_path(path) == nullptr)
      set_path(config, path, *value);
  return config;
}

namespace {

/// Varies what functions compute, given the entries of the parameters.
void vary_functions(Value& config, const Space& mutations, const Point& point,
                    const ExploreSettings& settings, Random& random) {
  const Value drawn = mutations.config(point, random);
  const Value again = mutations.config(point, random);
  for (const auto& path : mutations.varied_paths()) {
    const Value* value = drawn.find_path(path);
    if (mutations.find(path) || value == nullptr) continue;
    const Value* now = config.find_path(path);
    const bool follows = *value == *again.find_path(path);
    if (follows || now == nullptr || !now->is_number() ||
        random.uniform() < settings.resample_probability) {
      set_path(config, path, *value);
      continue;
    }
    const double factor = random.below(2) == 0 ? settings.factor_up : settings.factor_down;
    const double varied = now->as_number() * factor;
    set_path(config, path, now->is_integer() ? Value(std::llround(varied)) : Value(varied));
  }
}

}  // namespace

Value explore(const Value& config, const Space& mutations, const ExploreSettings& settings,
              Random& random) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Point point(mutations.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      double now = entry_in(config, mutations, i);
      const Parameter& parameter = mutations.parameters()[i];
      if (random.uniform() < settings.resample_probability || std::isnan(now))
        point[i] = mutations.sample_parameter(i, random);
      else if (parameter.is_number())
        point[i] = vary_number(now, i, mutations, settings, random);
      else
        point[i] = vary_choice(now, parameter, random);
    }
    if (!mutations.settle(point, random)) continue;
    Value varied = with_point(config, mutations, point);
    if (mutations.has_functions()) vary_functions(varied, mutations, point, settings, random);
    return varied;
  }
  return config;
}

}  // namespace kolo::search

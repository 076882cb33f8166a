// Building a Space: everything that can be wrong with one is found here.
#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/registry.h"
#include "base/text_table.h"
#include "kolo/random.h"
#include "search/space/json_value.h"
#include "search/space/partial_config.h"
#include "search/space/path.h"
#include "search/space/space_body.h"

namespace kolo::search {
namespace {

// An order in which every parameter comes after its parents; smallest index first.
std::vector<std::size_t> order_by_dependency(const std::vector<std::vector<std::size_t>>& parents,
                                             std::span<const Parameter> parameters) {
  const std::size_t count = parameters.size();
  std::vector<std::vector<std::size_t>> children(count);
  std::vector<std::size_t> missing(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    missing[i] = parents[i].size();
    for (const std::size_t parent : parents[i]) children[parent].push_back(i);
  }
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < count; ++i)
    if (missing[i] == 0) ready.insert(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t child : children[next])
      if (--missing[child] == 0) ready.insert(child);
  }
  if (order.size() == count) return order;

  // Walk up from any parameter left over until one repeats: that is the cycle.
  std::size_t here = 0;
  while (missing[here] == 0) ++here;
  std::vector<std::size_t> trail;
  while (std::find(trail.begin(), trail.end(), here) == trail.end()) {
    trail.push_back(here);
    here = *std::find_if(parents[here].begin(), parents[here].end(),
                         [&](std::size_t parent) { return missing[parent] != 0; });
  }
  std::string cycle = parameters[here].path;
  for (auto step = std::find(trail.begin(), trail.end(), here) + 1; step != trail.end(); ++step)
    cycle += " -> " + parameters[*step].path;
  throw_error(ErrorCode::invalid_argument, "{}: conditions depend on each other: {} -> {}",
              parameters[here].path, cycle, parameters[here].path);
}

[[noreturn]] void throw_no_parameter(std::string_view path, std::span<const Parameter> parameters) {
  std::vector<std::string_view> known;
  for (const Parameter& parameter : parameters) known.push_back(parameter.path);
  const std::string_view near = nearest_name(path, known);
  throw_error(ErrorCode::invalid_argument, "'{}' is not a parameter of the space{}{}{}", path,
              near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

}  // namespace

Space::Builder::Builder() : draft_(std::make_unique<Draft>()) {}
Space::Builder::Builder(Spec spec) : Builder() { draft_->spec = std::move(spec); }
Space::Builder::Builder(Builder&&) noexcept = default;
Space::Builder& Space::Builder::operator=(Builder&&) noexcept = default;
Space::Builder::~Builder() = default;

Space::Builder& Space::Builder::add(std::string_view path, Spec spec) {
  Spec* here = &draft_->spec;
  std::string walked;
  PathWalk walk(path);
  if (walk.done()) throw_error(ErrorCode::invalid_argument, "add: the path is empty");
  if (std::count(path.begin(), path.end(), '/') >= kDeepestValue)
    throw_error(ErrorCode::invalid_argument, "add {}: the path has more than {} names",
                shortened(std::string(path), 60), kDeepestValue);
  while (true) {
    auto* dict = std::get_if<Spec::Dict>(&here->data());
    if (dict == nullptr)
      throw_error(ErrorCode::already_exists, "add {}: '{}' is not a dictionary", path, walked);
    const std::string key(walk.next());
    walked = join_path(walked, key);
    if (walk.done()) {
      if (!dict->emplace(key, std::move(spec)).second)
        throw_error(ErrorCode::already_exists, "add {}: this path is already in use", path);
      return *this;
    }
    here = &dict->emplace(key, Spec::Dict()).first->second;
  }
}

Space::Builder& Space::Builder::condition(std::string path, Clause clause) {
  draft_->conditions.emplace_back(std::move(path), std::move(clause));
  return *this;
}

Space::Builder& Space::Builder::forbid(Clause clause) {
  draft_->forbidden.push_back(std::move(clause));
  return *this;
}

Space::Builder& Space::Builder::constraint(ConstraintFunction function) {
  draft_->constraint = std::move(function);
  return *this;
}

Space::Builder& Space::Builder::starting_point(Value partial) {
  draft_->starting_points.push_back(std::move(partial));
  return *this;
}

std::shared_ptr<const Space> Space::Builder::build() {
  const std::unique_ptr<Draft> draft = std::exchange(draft_, std::make_unique<Draft>());
  auto body = std::make_unique<Space::Body>();
  body->root = compile_tree(draft->spec, "", body->parameters);
  body->has_functions = contains_functions(body->root);
  const auto& parameters = body->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) body->index.emplace(parameters[i].path, i);

  const ParameterLookup lookup = [&](std::string_view path) {
    const auto found = body->index.find(path);
    if (found == body->index.end()) throw_no_parameter(path, parameters);
    return std::pair(found->second, &parameters[found->second]);
  };
  std::vector<std::vector<std::size_t>> parents(parameters.size());
  body->conditions_of.resize(parameters.size());
  for (auto& [path, clause] : draft->conditions) {
    if (path.empty() || !contains_path(body->root, path))
      throw_error(ErrorCode::invalid_argument,
                  "{}: there is a condition for this path, but the path is not in the space", path);
    const std::size_t place = body->conditions.size();
    body->conditions.push_back({path, clause.to_string(), CompiledClause(clause, lookup)});
    std::vector<std::size_t> spoken_of;
    body->conditions.back().clause.collect(spoken_of);
    std::sort(spoken_of.begin(), spoken_of.end());
    spoken_of.erase(std::unique(spoken_of.begin(), spoken_of.end()), spoken_of.end());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!is_within(parameters[i].path, path)) continue;
      body->conditions_of[i].push_back(place);
      for (const std::size_t parent : spoken_of)
        if (std::find(parents[i].begin(), parents[i].end(), parent) == parents[i].end())
          parents[i].push_back(parent);
    }
  }
  body->order = order_by_dependency(parents, parameters);
  for (const Clause& clause : draft->forbidden)
    body->forbidden.push_back({clause.to_string(), CompiledClause(clause, lookup)});
  body->constraint = std::move(draft->constraint);
  for (const Value& partial : draft->starting_points)
    (void)entries_of_config(body->root, parameters, partial);
  body->starting_points = std::move(draft->starting_points);

  std::shared_ptr<Space> space(new Space(std::unique_ptr<const Space::Body>(std::move(body))));
  // A space that refuses everything is found now, not by the first trial.
  if (space->has_refusals()) {
    Random probe(0);
    (void)space->sample(probe);
  }
  return space;
}

}  // namespace kolo::search

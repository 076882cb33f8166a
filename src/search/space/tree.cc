// Compiling: the Spec is walked in depth-first order, dictionaries by sorted keys. Every leaf with
// a domain becomes the next Parameter, so that the order of parameters follows from the Spec alone.
//
// Making a configuration (Assembly): everything except functions is put in place first. Functions
// then run in passes. One that reads a value which another function has yet to compute throws
// Pending and is tried again in the next pass. A pass without progress means that functions depend
// on each other in a cycle, and the error names it. Each function has a random stream of its own,
// named by its path, so that its draws do not depend on the order in which functions run.
#include "search/space/tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/errors.h"
#include "base/json.h"
#include "base/text_table.h"
#include "kolo/random.h"
#include "search/space/json_value.h"
#include "search/space/parameter.h"
#include "search/space/path.h"

namespace kolo::search {
namespace {

void check_key(const std::string& key, const std::string& path) {
  if (key.empty() || key.find('/') != std::string::npos)
    throw_error(ErrorCode::invalid_argument,
                "{}: the key '{}' is not allowed: keys are not empty and hold no '/'",
                path.empty() ? "the space" : path, key);
  // Names stand in tables, in files of lines and on terminals.
  if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw_error(ErrorCode::invalid_argument,
                "{}: the key {} is not allowed: it has a control character, such as a line feed",
                path.empty() ? "the space" : path, json_text(Json(key)));
}

/// What is above a value, together with what is nested in it.
void check_depth(const std::string& path, const Value& constant) {
  const auto above = path.empty() ? 0 : 1 + std::count(path.begin(), path.end(), '/');
  if (above > kDeepestValue || is_deeper(constant, static_cast<int>(kDeepestValue - above)))
    throw_error(ErrorCode::invalid_argument,
                "{}: the space is nested more than {} deep there; use fewer levels",
                shortened(path, 60), kDeepestValue);
}

Node compile_leaf(const Domain& domain, const std::string& path,
                  std::vector<Parameter>& parameters) {
  Node node;
  node.path = path;
  if (domain.primitive == Primitive::sample_from) {
    if (!domain.function)
      throw_error(ErrorCode::invalid_argument, "{}: sample_from has no function", path);
    node.kind = Node::Kind::function;
    node.function = domain.function;
    node.text = domain.text;
    return node;
  }
  node.kind = Node::Kind::parameter;
  node.parameter = parameters.size();
  parameters.push_back(make_parameter(path, domain));
  if (domain.primitive == Primitive::grid_search) {
    for (const Spec& entry : *domain.entries) {
      const Domain* inner = std::get_if<Domain>(&entry.data());
      node.entry_functions.push_back(inner != nullptr ? inner->function : nullptr);
    }
    if (std::none_of(node.entry_functions.begin(), node.entry_functions.end(),
                     [](const SampleFunction& function) { return function != nullptr; }))
      node.entry_functions.clear();
  }
  return node;
}

// Thrown by ConfigView::at when the value is not computed yet.
struct Pending {
  std::string path;
};

// The functions of one configuration, and what is known so far.
class Assembly : public ConfigView {
 public:
  Assembly(std::span<const Parameter> parameters, const Point& point, const IsAbsent& is_absent,
           Random* random)
      : parameters_(parameters), point_(point), is_absent_(is_absent) {
    if (random != nullptr) source_ = Random(random->next());
  }

  void assemble(const Node& root) {
    config_ = *make(root);
    while (!waiting_.empty()) {
      if (!pass()) throw_cycle();
    }
  }

  Value take() { return std::move(config_); }

  [[nodiscard]] const Value& at(std::string_view path) const override {
    for (const auto& [open, function] : waiting_)
      if (is_within(open, path) || is_within(path, open)) throw Pending{open};
    return config_.at_path(path);
  }

  [[nodiscard]] bool contains(std::string_view path) const override {
    return config_.find_path(path) != nullptr;
  }

  [[nodiscard]] std::optional<std::vector<std::string>> names_in(
      std::string_view path) const override {
    const Value* const value = config_.find_path(path);
    if (value == nullptr || !value->is_dict()) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& [name, item] : value->as_dict()) names.push_back(name);
    return names;
  }

  double random() const override { return stream_->uniform(); }

 private:
  std::optional<Value> make(const Node& node) {
    if (is_absent_(node)) return std::nullopt;
    switch (node.kind) {
      case Node::Kind::constant: return node.constant;
      case Node::Kind::parameter: return make_parameter_value(node);
      case Node::Kind::function: return postpone(node.path, node.function);
      case Node::Kind::list: {
        Value::List items;
        for (const Node& child : node.children) items.push_back(make(child).value_or(Value()));
        return Value(std::move(items));
      }
      case Node::Kind::dict: {
        Value::Dict items;
        for (std::size_t i = 0; i < node.children.size(); ++i)
          if (auto item = make(node.children[i])) items.emplace(node.keys[i], *std::move(item));
        return Value(std::move(items));
      }
    }
    return std::nullopt;
  }

  std::optional<Value> make_parameter_value(const Node& node) {
    const double entry = point_[node.parameter];
    if (std::isnan(entry)) return std::nullopt;
    if (!node.entry_functions.empty())
      if (const auto& function = node.entry_functions[static_cast<std::size_t>(entry)])
        return postpone(node.path, function);
    return entry_value(parameters_[node.parameter], entry);
  }

  // A place is kept; the function runs once everything else is there.
  std::optional<Value> postpone(const std::string& path, const SampleFunction& function) {
    if (!source_) return std::nullopt;
    waiting_.emplace(path, &function);
    return Value();
  }

  bool pass() {
    bool progress = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      stream_ = source_->stream(next->first);
      // A function that reads itself would wait for ever: it stays in the list while it runs.
      try {
        Value value = (*next->second)(*this);
        const_cast<Value&>(config_.at_path(next->first)) = std::move(value);
        next = waiting_.erase(next);
        progress = true;
      } catch (const Pending& pending) {
        waits_for_[next->first] = pending.path;
        ++next;
      }
    }
    return progress;
  }

  [[noreturn]] void throw_cycle() const {
    std::string path = waiting_.begin()->first;
    std::map<std::string, bool> seen;
    while (!seen[path]) {
      seen[path] = true;
      path = waits_for_.at(path);
    }
    const std::string first = path;
    std::string cycle = first;
    do {
      path = waits_for_.at(path);
      cycle += " -> " + path;
    } while (path != first);
    throw_error(ErrorCode::failed_precondition,
                "{}: functions of the space depend on each other in a cycle: {}", first, cycle);
  }

  std::span<const Parameter> parameters_;
  const Point& point_;
  const IsAbsent& is_absent_;
  std::optional<Random> source_;
  mutable std::optional<Random> stream_;
  std::map<std::string, const SampleFunction*> waiting_;
  std::map<std::string, std::string> waits_for_;
  Value config_;
};

}  // namespace

Node compile_tree(const Spec& spec, const std::string& path, std::vector<Parameter>& parameters) {
  check_depth(path, {});
  if (const Domain* domain = std::get_if<Domain>(&spec.data()))
    return compile_leaf(*domain, path, parameters);
  Node node;
  node.path = path;
  if (const Value* constant = std::get_if<Value>(&spec.data())) {
    check_depth(path, *constant);
    node.constant = *constant;
  } else if (const auto* list = std::get_if<Spec::List>(&spec.data())) {
    node.kind = Node::Kind::list;
    for (std::size_t i = 0; i < list->size(); ++i)
      node.children.push_back(
          compile_tree((*list)[i], join_path(path, std::to_string(i)), parameters));
  } else {
    node.kind = Node::Kind::dict;
    for (const auto& [key, child] : std::get<Spec::Dict>(spec.data())) {
      check_key(key, path);
      node.keys.push_back(key);
      node.children.push_back(compile_tree(child, join_path(path, key), parameters));
    }
  }
  return node;
}

bool contains_functions(const Node& node) {
  if (node.kind == Node::Kind::function || !node.entry_functions.empty()) return true;
  for (const Node& child : node.children)
    if (contains_functions(child)) return true;
  return false;
}

std::vector<std::string> varied_paths(const Node& node) {
  if (node.kind == Node::Kind::parameter || node.kind == Node::Kind::function) return {node.path};
  std::vector<std::string> paths;
  for (const Node& child : node.children)
    for (auto& path : varied_paths(child)) paths.push_back(std::move(path));
  return paths;
}

bool contains_path(const Node& node, std::string_view path) {
  if (is_within(node.path, path)) return true;
  for (const Node& child : node.children)
    if (contains_path(child, path)) return true;
  return false;
}

Value make_config(const Node& root, std::span<const Parameter> parameters, const Point& point,
                  const IsAbsent& is_absent, Random* random) {
  Assembly assembly(parameters, point, is_absent, random);
  assembly.assemble(root);
  return assembly.take();
}

}  // namespace kolo::search

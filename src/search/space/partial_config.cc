// The configuration and the compiled tree are walked side by side. What the configuration leaves
// out stays NaN in the point. Values of functions are ignored, because they are computed again.
#include "search/space/partial_config.h"

#include <algorithm>
#include <limits>

#include "base/errors.h"
#include "base/registry.h"
#include "search/space/parameter.h"
#include "search/space/path.h"

namespace kolo::search {
namespace {

class Reader {
 public:
  Reader(std::span<const Parameter> parameters, Point& point)
      : parameters_(parameters), point_(point) {}

  void read(const Node& node, const Value& value) {
    switch (node.kind) {
      case Node::Kind::function: return;  // whatever it was: it is computed again
      case Node::Kind::constant: return read_constant(node, value);
      case Node::Kind::parameter: return read_parameter(node, value);
      case Node::Kind::list: return read_list(node, value);
      case Node::Kind::dict: return read_dict(node, value);
    }
  }

 private:
  static void read_constant(const Node& node, const Value& value) {
    if (!(value == node.constant))
      throw_error(ErrorCode::invalid_argument, "{}: {} is not the constant {}", node.path,
                  value.to_string(), node.constant.to_string());
  }

  void read_parameter(const Node& node, const Value& value) {
    const Parameter& parameter = parameters_[node.parameter];
    if (!node.entry_functions.empty()) {
      // A function may give any value; without a constant equal to this one it must be a
      // function's.
      for (std::size_t i = 0; i < node.entry_functions.size(); ++i)
        if (!node.entry_functions[i] && (*parameter.choices)[i] == value) {
          point_[node.parameter] = static_cast<double>(i);
          return;
        }
      const auto function = std::find_if(node.entry_functions.begin(), node.entry_functions.end(),
                                         [](const auto& f) { return f != nullptr; });
      point_[node.parameter] = static_cast<double>(function - node.entry_functions.begin());
      return;
    }
    point_[node.parameter] = value_entry(parameter, value);
  }

  void read_list(const Node& node, const Value& value) {
    if (!value.is_list() || value.as_list().size() > node.children.size())
      throw_error(ErrorCode::invalid_argument, "{}: {} is not a list of at most {} items",
                  node.path, value.to_string(), node.children.size());
    const auto& items = value.as_list();
    for (std::size_t i = 0; i < items.size(); ++i) {
      // Nothing marks an inactive item, unless it is one of the values.
      if (items[i].is_nothing() && !may_be_nothing(node.children[i])) continue;
      read(node.children[i], items[i]);
    }
  }

  bool may_be_nothing(const Node& node) const {
    if (node.kind != Node::Kind::parameter || !parameters_[node.parameter].choices) return false;
    const auto& choices = *parameters_[node.parameter].choices;
    return std::any_of(choices.begin(), choices.end(),
                       [](const Value& choice) { return choice.is_nothing(); });
  }

  void read_dict(const Node& node, const Value& value) {
    if (!value.is_dict())
      throw_error(ErrorCode::invalid_argument, "{}: {} is not a dictionary",
                  node.path.empty() ? "the configuration" : node.path, value.to_string());
    for (const auto& [key, item] : value.as_dict()) {
      const auto found = std::lower_bound(node.keys.begin(), node.keys.end(), key);
      if (found == node.keys.end() || *found != key) {
        const std::vector<std::string_view> known(node.keys.begin(), node.keys.end());
        const std::string_view near = nearest_name(key, known);
        throw_error(ErrorCode::invalid_argument, "{}: the space has no such key{}{}{}",
                    join_path(node.path, key), near.empty() ? "" : "; did you mean '", near,
                    near.empty() ? "" : "'?");
      }
      read(node.children[static_cast<std::size_t>(found - node.keys.begin())], item);
    }
  }

  std::span<const Parameter> parameters_;
  Point& point_;
};

}  // namespace

Point entries_of_config(const Node& root, std::span<const Parameter> parameters,
                        const Value& config) {
  Point point(parameters.size(), std::numeric_limits<double>::quiet_NaN());
  Reader(parameters, point).read(root, config);
  return point;
}

}  // namespace kolo::search

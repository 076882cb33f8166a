// Spaces as data, and back. Nodes are called by their names, so that the text can be read and
// written by hand:
//
//   inputs: [[10]]
//   outputs: [[1]]
//   nodes:
//     - {name: layer, kind: variable, operations: [Identity, {Dense: {units: 16}}], from:
//     [input_0]}
//     - {name: output, kind: constant, operations: [{Dense: {units: 1}}], from: [layer]}
//   output_nodes: [output]
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/nas/search_space.h"
#include "nas/graph/graph_order.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

Value::List written(const std::vector<Shape>& shapes) {
  Value::List list;
  for (const Shape& shape : shapes) list.emplace_back(Value::List(shape.begin(), shape.end()));
  return list;
}

Value::List names_of(const std::vector<Node>& nodes, const std::vector<NodeId>& ids) {
  Value::List names;
  for (const NodeId id : ids) names.emplace_back(nodes[index_of(id)].name);
  return names;
}

Value written(const std::vector<Node>& nodes, const Operation& operation) {
  Value::Dict arguments = operation.arguments.as_dict();
  if (&kind_of(operation) == &kinds::connect)
    arguments["sources"] = Value(names_of(nodes, connect_sources(operation)));
  if (arguments.empty()) return Value(operation.name);
  Value::Dict dictionary;
  dictionary.emplace(operation.name, std::move(arguments));
  return Value(std::move(dictionary));
}

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::variable: return "variable";
    case NodeKind::constant: return "constant";
    case NodeKind::mirror: return "mirror";
    case NodeKind::mime: return "mime";
    case NodeKind::input: break;
  }
  return "input";
}

// ---- reading

std::vector<Shape> shapes_of(const Value& written) {
  std::vector<Shape> shapes;
  for (const Value& item : written.as_list()) {
    Shape& shape = shapes.emplace_back();
    for (const Value& extent : item.as_list()) shape.push_back(extent.as_integer());
  }
  return shapes;
}

class Reader {
 public:
  Reader(KSearchSpace& space, const Value::Dict& written) : space_(space), written_(written) {}

  void read() {
    for (const Value& node : nodes()) {
      const std::string name = node.at_path("name").as_string();
      try {
        add(name, node);
      } catch (const Error& error) {
        if (error.message().find("'" + name + "'") != std::string::npos) throw;
        throw Error(error.code(), fmt::format("node '{}': {}", name, error.message()));
      }
    }
    // Only now: what comes in may be written further below.
    for (const Value& node : nodes())
      if (const Value* from = node.find_path("from"))
        for (const Value& source : from->as_list())
          space_.connect(space_.find(source.as_string()),
                         space_.find(node.at_path("name").as_string()));
    if (const auto outputs = written_.find("output_nodes"); outputs != written_.end()) {
      std::vector<NodeId> ids;
      for (const Value& name : outputs->second.as_list())
        ids.push_back(space_.find(name.as_string()));
      space_.set_outputs(std::move(ids));
    } else {
      add_outputs(space_);
    }
  }

 private:
  [[nodiscard]] const Value::List& nodes() const {
    return written_.find("nodes")->second.as_list();
  }

  void add(const std::string& name, const Value& node) {
    constexpr std::array<std::string_view, 5> kKnown = {"name", "kind", "operations", "target",
                                                        "from"};
    for (const auto& [key, value] : node.as_dict()) {
      (void)value;
      if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end())
        throw_unknown_name("entry of a node", key, {kKnown.begin(), kKnown.end()});
    }
    std::vector<Operation> operations;
    if (const Value* list = node.find_path("operations"))
      for (const Value& item : list->as_list()) operations.push_back(operation_of(item));
    const std::string kind = node.at_path("kind").as_string();
    if (kind == "variable") {
      space_.add_variable(name, std::move(operations));
    } else if (kind == "constant") {
      if (operations.size() != 1)
        throw_error(ErrorCode::invalid_argument, "a ConstantNode has one operation, not {}",
                    operations.size());
      space_.add_constant(name, std::move(operations[0]));
    } else if (kind == "mirror") {
      space_.add_mirror(name, target_of(node));
    } else if (kind == "mime") {
      space_.add_mime(name, target_of(node), std::move(operations));
    } else {
      throw_unknown_name("kind of node", kind, {"variable", "constant", "mirror", "mime"});
    }
  }

  NodeId target_of(const Value& node) const {
    return space_.find(node.at_path("target").as_string());
  }

  Operation operation_of(const Value& item) const {
    if (item.is_string()) return Operation(item.as_string());
    if (!item.is_dict() || item.as_dict().size() != 1)
      throw_error(ErrorCode::invalid_argument,
                  "an operation is a name or {{name: {{arguments}}}}, not {}", item.to_string());
    const auto& [name, arguments] = *item.as_dict().begin();
    Operation operation(name, arguments);
    if (&operation_kind(name) == &kinds::connect)
      for (Value& source : operation.arguments.as_dict()["sources"].as_list())
        if (source.is_string())
          source = Value(static_cast<std::int64_t>(space_.find(source.as_string())));
    return operation;
  }

  KSearchSpace& space_;
  const Value::Dict& written_;
};

}  // namespace

Value KSearchSpace::to_value() const {
  Value::List nodes;
  for (const Node& node : nodes_) {
    if (node.kind == NodeKind::input) continue;
    Value::Dict entry;
    entry.emplace("name", node.name);
    entry.emplace("kind", kind_name(node.kind));
    if (!node.operations.empty()) {
      Value::List operations;
      for (const Operation& operation : node.operations)
        operations.push_back(written(nodes_, operation));
      entry.emplace("operations", std::move(operations));
    }
    if (static_cast<std::int64_t>(node.target) >= 0)
      entry.emplace("target", nodes_[index_of(node.target)].name);
    if (!node.sources.empty()) entry.emplace("from", names_of(nodes_, node.sources));
    nodes.emplace_back(std::move(entry));
  }
  Value::Dict all;
  all.emplace("inputs", written(inputs_));
  all.emplace("outputs", written(outputs_));
  all.emplace("nodes", std::move(nodes));
  all.emplace("output_nodes", names_of(nodes_, output_nodes()));
  return Value(std::move(all));
}

std::shared_ptr<KSearchSpace> space_from_value(const Value& written) {
  constexpr std::array<std::string_view, 4> kKnown = {"inputs", "outputs", "nodes", "output_nodes"};
  for (const auto& [key, value] : written.as_dict()) {
    (void)value;
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end())
      throw_unknown_name("entry of an architecture space", key, {kKnown.begin(), kKnown.end()});
  }
  (void)written.at_path("nodes").as_list();
  auto space = std::make_shared<KSearchSpace>(shapes_of(written.at_path("inputs")),
                                              shapes_of(written.at_path("outputs")));
  Reader(*space, written.as_dict()).read();
  space->check();
  return space;
}

}  // namespace kolo::nas

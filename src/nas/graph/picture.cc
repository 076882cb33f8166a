// Without an architecture a box lists the first operations of its node. With one it shows the
// chosen operation and the shape of its result, taken from the blueprint; nodes that are off stay
// visible, marked as such.
#include "nas/graph/picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "nas/graph/blueprint.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

constexpr std::size_t kOperationsShown = 4;

class Illustrator {
 public:
  Illustrator(const KSearchSpace& space, const GraphOrder& order, const MaybeArchitecture& arch_seq)
      : space_(space), nodes_(space.nodes()), order_(order), arch_seq_(arch_seq) {
    if (arch_seq) plan_ = draw_blueprint(space, order, *arch_seq);
  }

  Picture draw() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      picture_.boxes.push_back(plan_ ? box_of_architecture(i) : box_of_space(i));
      add_arrows(i);
    }
    for (const std::size_t output : order_.outputs) picture_.boxes[output].is_output = true;
    picture_.caption = caption();
    return std::move(picture_);
  }

 private:
  Picture::Box box_of_space(std::size_t index) const {
    const Node& node = nodes_[index];
    Picture::Box box{.title = node.name, .lines = {}, .kind = node.kind};
    if (node.kind == NodeKind::input) {
      box.lines.push_back(to_string(space_.input_shapes()[index]));
    } else if (node.kind == NodeKind::mirror) {
      box.lines.push_back("layer of " + name_of(node.target));
    } else if (node.kind == NodeKind::mime) {
      box.lines.push_back("choice of " + name_of(node.target));
    } else {
      const std::size_t all = node.operations.size();
      const std::size_t shown = all <= kOperationsShown ? all : kOperationsShown - 1;
      for (std::size_t i = 0; i < shown; ++i) box.lines.push_back(label_of(node.operations[i]));
      if (shown < all) box.lines.push_back(fmt::format("… and {} more", all - shown));
    }
    return box;
  }

  Picture::Box box_of_architecture(std::size_t index) const {
    const Node& node = nodes_[index];
    if (node.kind == NodeKind::input) return box_of_space(index);
    const Operation& operation = *chosen_operation(nodes_, order_, index, *arch_seq_);
    const auto& tensors = plan_->values[index];
    Picture::Box box{.title = node.name, .lines = {label_of(operation)}, .kind = node.kind};
    box.off = tensors.empty();
    box.chosen = order_.decided_by[index] >= 0 && !box.off;
    if (node.kind == NodeKind::mirror) box.lines.push_back("layer of " + name_of(node.target));
    if (node.kind == NodeKind::mime) box.lines.push_back("choice of " + name_of(node.target));
    if (tensors.size() == 1) box.lines.push_back(to_string(plan_->shapes[tensors[0]]));
    if (tensors.size() > 1) box.lines.push_back(fmt::format("{} tensors", tensors.size()));
    return box;
  }

  void add_arrows(std::size_t index) {
    // What is concatenated is equal; elsewhere the first is what the others are added to.
    const auto& sources = nodes_[index].sources;
    const auto& operations = with_operations(nodes_, nodes_[index]).operations;
    const bool has_main =
        sources.size() == 1 || operations.empty() || &kind_of(operations[0]) != &kinds::concatenate;
    for (const NodeId source : sources)
      picture_.arrows.push_back({index_of(source), index, Picture::Line::connection,
                                 has_main && source == sources.front()});
    if (plan_) {
      if (const Operation* operation = chosen_operation(nodes_, order_, index, *arch_seq_))
        for (const NodeId source : connect_sources(*operation))
          picture_.arrows.push_back({index_of(source), index, Picture::Line::skip});
      return;
    }
    std::vector<NodeId> possible;  // several operations may have the same source
    for (const Operation& operation : with_operations(nodes_, nodes_[index]).operations)
      for (const NodeId source : connect_sources(operation))
        if (std::find(possible.begin(), possible.end(), source) == possible.end()) {
          possible.push_back(source);
          picture_.arrows.push_back({index_of(source), index, Picture::Line::possible_skip});
        }
  }

  std::string label_of(const Operation& operation) const {
    std::string text = operation.label();
    std::string_view before = " ";
    for (const NodeId source : connect_sources(operation)) {
      text += std::string(before) + name_of(source);
      before = ", ";
    }
    return text;
  }

  std::string name_of(NodeId id) const { return nodes_[index_of(id)].name; }

  std::string caption() const {
    const double size = space_.size();
    const std::string count =
        size < 1e6 ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size);
    std::string text = fmt::format("{} of {} architecture{}", arch_seq_ ? "one" : "space", count,
                                   size == 1 ? "" : "s");
    if (!arch_seq_) return text;
    text += ": [";
    for (std::size_t i = 0; i < arch_seq_->size(); ++i)
      text += fmt::format("{}{}", i > 0 ? ", " : "", (*arch_seq_)[i]);
    return text + "]";
  }

  const KSearchSpace& space_;
  const std::vector<Node>& nodes_;
  const GraphOrder& order_;
  MaybeArchitecture arch_seq_;
  std::optional<Blueprint> plan_;
  Picture picture_;
};

}  // namespace

Picture draw_picture(const KSearchSpace& space, const GraphOrder& order,
                     const MaybeArchitecture& arch_seq) {
  if (arch_seq) space.check_architecture(*arch_seq);
  return Illustrator(space, order, arch_seq).draw();
}

}  // namespace kolo::nas

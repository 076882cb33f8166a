// A space in the language of Graphviz.
#include <fmt/format.h>

#include "nas/graph/picture.h"

namespace kolo::nas {
namespace {

/// Inside quotation marks.
std::string dot_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    if (c == '\n')
      safe += "\\n";
    else
      safe += c;
  }
  return "\"" + safe + "\"";
}

std::string_view style_of(const Picture::Box& box) {
  if (box.off) return "style=\"rounded,dashed\" color=\"#b0b7c3\" fontcolor=\"#9aa3b2\"";
  if (box.chosen)
    return "style=\"rounded,filled\" fillcolor=\"#cfe3ff\" color=\"#1d5fbf\" penwidth=2";
  switch (box.kind) {
    case NodeKind::input: return "style=filled fillcolor=\"#dff3e4\" color=\"#2f8f4e\"";
    case NodeKind::variable:
      return "style=\"rounded,filled\" fillcolor=\"#e8f1ff\" color=\"#1d5fbf\"";
    case NodeKind::constant:
      return "style=\"rounded,filled\" fillcolor=\"#f1f3f6\" color=\"#5b6472\"";
    case NodeKind::mirror:
      return "style=\"rounded,filled\" fillcolor=\"#f1e8ff\" color=\"#7a3fc0\"";
    case NodeKind::mime: return "style=\"rounded,filled\" fillcolor=\"#fff1de\" color=\"#b86a00\"";
  }
  return "";
}

std::string_view style_of(Picture::Line line) {
  switch (line) {
    case Picture::Line::connection: return "color=\"#5b6472\"";
    case Picture::Line::possible_skip: return "style=dashed color=\"#8fa8cc\"";
    case Picture::Line::skip: return "color=\"#1d5fbf\" penwidth=2";
  }
  return "";
}

}  // namespace

std::string KSearchSpace::to_dot(std::optional<std::span<const std::int64_t>> arch_seq) const {
  const Picture picture = draw_picture(*this, *order(), arch_seq);
  std::string text = fmt::format(
      "digraph space {{\n  label={};\n  node [shape=box fontname=\"Helvetica\" fontsize=10];\n"
      "  edge [arrowsize=0.7];\n",
      dot_text(picture.caption));
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    const Picture::Box& box = picture.boxes[i];
    std::string label = box.title;
    for (const std::string& line : box.lines) label += "\n" + line;
    text += fmt::format("  n{} [label={} {}{}];\n", i, dot_text(label), style_of(box),
                        box.is_output ? " peripheries=2" : "");
  }
  for (const Picture::Arrow& arrow : picture.arrows)
    text += fmt::format("  n{} -> n{} [{}];\n", arrow.from, arrow.to, style_of(arrow.line));
  return text + "}\n";
}

}  // namespace kolo::nas

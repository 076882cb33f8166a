// A space as a drawing that stands alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/markup.h"
#include "nas/graph/layered_layout.h"
#include "nas/graph/picture.h"

namespace kolo::nas {
namespace {

constexpr double kMargin = 24, kLineHeight = 15, kBoxPadding = 10, kLetter = 6.3, kLegend = 44;
constexpr double kTrunkWeight = 12;

constexpr std::string_view kStyle = R"(
  text { font: 11px "DejaVu Sans", Verdana, Helvetica, sans-serif; fill: #39414d; text-anchor: middle }
  .title { font-weight: bold; fill: #1b2330 }
  .chosen-text { font-weight: bold; fill: #0b4aa2 }
  .caption { font-size: 12px; text-anchor: start; fill: #5b6472 }
  .legend { text-anchor: start; fill: #5b6472 }
  rect { stroke-width: 1.2 }
  .paper { fill: #ffffff }
  .input { fill: #dff3e4; stroke: #2f8f4e }
  .variable { fill: #e8f1ff; stroke: #1d5fbf }
  .constant { fill: #f4f5f8; stroke: #7a8494 }
  .mirror { fill: #f1e8ff; stroke: #7a3fc0 }
  .mime { fill: #fff1de; stroke: #b86a00 }
  .chosen { stroke-width: 2.4; fill: #d3e5ff }
  .output { stroke-width: 2.4 }
  .off { fill: #ffffff; stroke: #c3c9d3; stroke-dasharray: 4 3; stroke-width: 1 }
  .off-text { fill: #a7afbc; font-weight: normal }
  path { fill: none; stroke: #7a8494; stroke-width: 1.3 }
  .possible { stroke: #9db6da; stroke-dasharray: 5 4 }
  .skip { stroke: #1d5fbf; stroke-width: 2 }
  .faint { stroke: #d4d9e1; stroke-width: 1 }
  marker path { fill: #7a8494; stroke: none }
)";

/// How wide a text is, nearly: bytes that continue a letter have no width.
double width_of(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  });
  return static_cast<double>(letters) * kLetter;
}

std::string_view class_of(NodeKind kind) {
  constexpr std::array<std::string_view, 5> kClasses = {"input", "variable", "constant", "mirror",
                                                        "mime"};
  return kClasses[static_cast<std::size_t>(kind)];
}

LayoutBox size_of(const Picture::Box& box) {
  double width = width_of(box.title) * 1.12;  // bold
  for (std::size_t i = 0; i < box.lines.size(); ++i)
    width = std::max(width, width_of(box.lines[i]) * (i == 0 && box.chosen ? 1.12 : 1));
  return {.width = width + 2 * kBoxPadding,
          .height = kLineHeight * static_cast<double>(1 + box.lines.size()) + kBoxPadding};
}

class SvgWriter {
 public:
  SvgWriter(const Picture& picture, const std::vector<std::size_t>& order) : picture_(picture) {
    for (const Picture::Box& box : picture.boxes) boxes_.push_back(size_of(box));
    for (const Picture::Arrow& arrow : picture.arrows)
      arrows_.push_back({arrow.from, arrow.to, arrow.is_main ? kTrunkWeight : 1});
    std::tie(width_, height_) = lay_out(boxes_, arrows_, order);
  }

  std::string write() {
    const double legend = legend_width();
    const double width = std::max({width_, legend, 360.0}) + 2 * kMargin;
    shift_x_ = (width - width_) / 2;
    const auto captions = caption_lines(width - 2 * kMargin);
    shift_y_ = kMargin + kLineHeight * static_cast<double>(captions.size() + 1);
    const double height = shift_y_ + height_ + kLegend + kMargin;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}</style>\n<defs><marker id=\"head\" "
        "viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>"
        "</defs>\n<rect class=\"paper\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
        width, height, kStyle);
    for (std::size_t i = 0; i < captions.size(); ++i)
      text_ += fmt::format("<text class=\"caption\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kMargin,
                           kMargin + kLineHeight * static_cast<double>(i) + 4,
                           markup_escaped(captions[i]));
    for (std::size_t i = 0; i < arrows_.size(); ++i) write_arrow(i);
    for (std::size_t i = 0; i < boxes_.size(); ++i) write_box(i);
    write_legend(height - kMargin);
    return text_ + "</svg>\n";
  }

 private:
  /// Broken at spaces so that it fits.
  std::vector<std::string> caption_lines(double width) const {
    std::vector<std::string> lines{""};
    std::size_t begin = 0;
    while (begin < picture_.caption.size()) {
      const std::size_t end = std::min(picture_.caption.find(' ', begin), picture_.caption.size());
      const std::string word = picture_.caption.substr(begin, end - begin);
      if (!lines.back().empty() && width_of(lines.back() + " " + word) * 1.1 > width)
        lines.emplace_back();
      if (!lines.back().empty()) lines.back() += ' ';
      lines.back() += word;
      begin = end + 1;
    }
    return lines;
  }

  void write_arrow(std::size_t index) {
    const LayoutArrow& arrow = arrows_[index];
    const LayoutBox &from = boxes_[arrow.from], &to = boxes_[arrow.to];
    double x = from.x + shift_x_, y = from.y + from.height / 2 + shift_y_;
    std::string path = fmt::format("M{:.1f} {:.1f}", x, y);
    const auto curve_to = [&](double next_x, double next_y) {
      const double middle = (y + next_y) / 2;
      path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, middle, next_x, middle,
                          next_x, next_y);
      x = next_x;
      y = next_y;
    };
    for (const auto& bend : arrow.bends) {
      curve_to(bend.x + shift_x_, bend.top + shift_y_);
      y = bend.bottom + shift_y_;
      path += fmt::format("V{:.1f}", y);
    }
    curve_to(to.x + shift_x_, to.y - to.height / 2 + shift_y_);
    text_ += fmt::format("<path class=\"{}\" d=\"{}\" marker-end=\"url(#head)\"/>\n",
                         class_of(picture_.arrows[index]), path);
  }

  [[nodiscard]] std::string_view class_of(const Picture::Arrow& arrow) const {
    if (arrow.line == Picture::Line::skip) return "skip";
    if (arrow.line == Picture::Line::possible_skip) return "possible";
    return picture_.boxes[arrow.from].off ? "faint" : "connection";
  }

  void write_box(std::size_t index) {
    const Picture::Box& box = picture_.boxes[index];
    const LayoutBox& place = boxes_[index];
    const double x = place.x + shift_x_, top = place.y - place.height / 2 + shift_y_;
    text_ += fmt::format(
        "<g><rect class=\"{}{}{}{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"6\"/>",
        nas::class_of(box.kind), box.chosen ? " chosen" : "", box.is_output ? " output" : "",
        box.off ? " off" : "", x - place.width / 2, top, place.width, place.height);
    double y = top + kBoxPadding / 2 + kLineHeight - 4;
    const std::string_view off = box.off ? " off-text" : "";
    text_ += fmt::format("<text class=\"title{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", off, x, y,
                         markup_escaped(box.title));
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      y += kLineHeight;
      text_ += fmt::format("<text class=\"{}{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
                           i == 0 && box.chosen ? "chosen-text" : "line", off, x, y,
                           markup_escaped(box.lines[i]));
    }
    text_ += "</g>\n";
  }

  [[nodiscard]] std::vector<NodeKind> kinds() const {
    std::vector<NodeKind> all;
    for (const Picture::Box& box : picture_.boxes)
      if (std::find(all.begin(), all.end(), box.kind) == all.end()) all.push_back(box.kind);
    std::sort(all.begin(), all.end());
    return all;
  }

  [[nodiscard]] double legend_width() const {
    double width = 0;
    for (const NodeKind kind : kinds()) width += width_of(to_string(kind)) + 42;
    return width;
  }

  void write_legend(double y) {
    double x = kMargin;
    for (const NodeKind kind : kinds()) {
      text_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"12\" rx=\"3\"/>"
          "<text class=\"legend\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          nas::class_of(kind), x, y - 10, x + 22, y, to_string(kind));
      x += width_of(to_string(kind)) + 42;
    }
  }

  const Picture& picture_;
  std::vector<LayoutBox> boxes_;
  std::vector<LayoutArrow> arrows_;
  double width_ = 0, height_ = 0, shift_x_ = 0, shift_y_ = 0;
  std::string text_;
};

}  // namespace

std::string KSearchSpace::to_svg(std::optional<std::span<const std::int64_t>> arch_seq) const {
  const auto its_order = order();
  const Picture picture = draw_picture(*this, *its_order, arch_seq);
  return SvgWriter(picture, its_order->nodes).write();
}

}  // namespace kolo::nas

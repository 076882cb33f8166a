// The axes are chosen around all points that can be drawn; the legend takes its width from the
// longest name and is left out for a single series. Text is measured by an average width of
// letters, because an SVG file has no font metrics.
#include "base/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/axis.h"
#include "base/markup.h"

namespace kolo {
namespace {

// Colours that differ for people who do not see red and green apart (Okabe and Ito), darkened a
// little for lines on white.
constexpr std::array<std::string_view, 8> kPalette{"#0b6fb8", "#d1580a", "#0a8a63", "#b3478c",
                                                   "#8a6d00", "#3aa3d9", "#5b5b9d", "#4d4d4d"};
constexpr double kWidth = 860, kHeight = 480;
constexpr double kLeft = 78, kTop = 62, kBottom = 56, kRight = 24;
constexpr double kLetter = 6.6;  // about the width of a letter of 12 px
constexpr std::size_t kLongestName = 30;

std::string shortened(const std::string& name) {
  // Whole letters: bytes 10xxxxxx go on with the one before.
  std::size_t letters = 0, end = 0;
  for (std::size_t i = 0; i < name.size(); ++i)
    if ((static_cast<unsigned char>(name[i]) & 0xC0) != 0x80 && ++letters == kLongestName) end = i;
  return letters > kLongestName ? name.substr(0, end) + "…" : name;
}

std::size_t letters_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    std::vector<double> xs, ys;
    std::size_t longest = 0, named = 0;
    for (const PlotSeries& one : plot.series) {
      if (!one.name.empty()) ++named, longest = std::max(longest, letters_of(shortened(one.name)));
      for (const auto& [x, y] : one.points) {
        const bool failed = one.style == PlotSeries::Style::failures;
        if (!drawable(x, failed ? 1 : y)) continue;
        xs.push_back(x);
        if (!failed) ys.push_back(y);
      }
    }
    if (plot.y_from_zero && !plot.log_y) ys.push_back(0);
    x_ = axis_around(xs, plot.log_x, 0.02);
    y_ = axis_around(ys, plot.log_y, 0.05);
    if (plot.y_high > plot.y_low) y_.low = plot.y_low, y_.high = plot.y_high;
    if (plot.y_from_zero && !plot.log_y) y_.low = 0;
    const auto whole = [](double number) { return number == std::floor(number); };
    x_.whole = std::all_of(xs.begin(), xs.end(), whole);
    y_.whole = std::all_of(ys.begin(), ys.end(), whole);
    empty_ = xs.empty();
    legend_ = named < 2 ? 0 : 40 + kLetter * static_cast<double>(longest);
    right_ = kWidth - kRight - legend_;
  }

  std::string svg() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"system-ui, 'Helvetica Neue', Arial, sans-serif\" "
        "font-size=\"12\" fill=\"#3c4043\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight);
    draw_titles();
    draw_axes();
    out_ += fmt::format(
        "<clipPath id=\"inside\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/></clipPath>\n<g clip-path=\"url(#inside)\">\n",
        kLeft - 4, kTop - 4, right_ - kLeft + 8, bottom() - kTop + 8);
    using enum PlotSeries::Style;
    for (const auto style : {points, failures, steps, line})
      for (const PlotSeries& one : plot_.series)
        if (one.style == style) draw(one);
    out_ += "</g>\n";
    draw_legend();
    if (empty_)
      text((kLeft + right_) / 2, (kTop + bottom()) / 2, "nothing to show", "middle",
           " fill=\"#9aa0a6\"");
    return out_ + "</svg>\n";
  }

 private:
  static constexpr double bottom() { return kHeight - kBottom; }

  bool drawable(double x, double y) const {
    return std::isfinite(x) && std::isfinite(y) && (!plot_.log_x || x > 0) &&
           (!plot_.log_y || y > 0);
  }
  double px(double x) const { return kLeft + x_.place(x) * (right_ - kLeft); }
  double py(double y) const { return bottom() - y_.place(y) * (bottom() - kTop); }

  void text(double x, double y, std::string_view what, std::string_view anchor,
            std::string_view more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                        anchor, more, markup_escaped(what));
  }

  void draw_titles() {
    if (!plot_.title.empty())
      text(kLeft, 28, plot_.title, "start",
           " font-size=\"16\" font-weight=\"600\" fill=\"#202124\"");
    if (!plot_.subtitle.empty()) text(kLeft, 47, plot_.subtitle, "start", " fill=\"#70757a\"");
    text((kLeft + right_) / 2, kHeight - 14, plot_.x_label, "middle");
    const double middle = (kTop + bottom()) / 2;
    text(20, middle, plot_.y_label, "middle",
         fmt::format(" transform=\"rotate(-90 20 {:.1f})\"", middle));
  }

  void draw_axes() {
    const auto xs = x_.marks(8), ys = y_.marks(6);
    out_ += "<g stroke=\"#e4e7eb\" stroke-width=\"1\">\n";
    for (const double y : ys)
      out_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
                          kLeft, right_, py(y));
    for (const double x : xs)
      out_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
                          px(x), kTop, bottom());
    out_ += "</g>\n";
    out_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" fill=\"none\" stroke=\"#80868b\"/>\n", kLeft,
        kTop, bottom(), right_);
    for (const double y : ys) text(kLeft - 8, py(y) + 4, mark(ys, y, y_.log), "end");
    for (const double x : xs) text(px(x), bottom() + 18, mark(xs, x, x_.log), "middle");
  }

  static std::string mark(const std::vector<double>& marks, double value, bool log) {
    return mark_text(value, log || marks.size() < 2 ? std::abs(value) : marks[1] - marks[0]);
  }

  void draw(const PlotSeries& one) {
    const std::string_view color = kPalette[static_cast<std::size_t>(one.color) % kPalette.size()];
    if (one.style == PlotSeries::Style::points) return draw_points(one, color);
    if (one.style == PlotSeries::Style::failures) return draw_failures(one, color);
    std::string path;
    double first_x = 0, last_x = 0, last_y = 0;
    for (const auto& [x, y] : one.points) {
      if (!drawable(x, y)) continue;
      const double at_x = px(x), at_y = py(y);
      if (path.empty()) {
        path = fmt::format("M{:.1f} {:.1f}", at_x, at_y);
        first_x = at_x;
      } else if (one.style == PlotSeries::Style::steps) {
        // What does not change needs no corner.
        path += fmt::format("H{:.1f}", at_x);
        if (at_y != last_y) path += fmt::format("V{:.1f}", at_y);
      } else {
        path += fmt::format("L{:.1f} {:.1f}", at_x, at_y);
      }
      last_x = at_x, last_y = at_y;
    }
    if (path.empty()) return;
    if (one.filled)
      out_ +=
          fmt::format("<path d=\"{}L{:.1f} {:.1f}H{:.1f}Z\" fill=\"{}\" fill-opacity=\"0.13\"/>\n",
                      path, last_x, bottom(), first_x, color);
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
        "stroke-linejoin=\"round\"{}/>\n",
        path, color, one.filled ? "1.4" : "2.2", one.dashed ? " stroke-dasharray=\"6 5\"" : "");
  }

  void draw_points(const PlotSeries& one, std::string_view color) {
    // Many points hide each other: smaller and fainter.
    const bool many = one.points.size() > 400;
    out_ += fmt::format("<g fill=\"{}\" fill-opacity=\"{}\">\n", color, many ? "0.3" : "0.45");
    for (const auto& [x, y] : one.points) {
      if (!drawable(x, y)) continue;
      if (y < y_.low || y > y_.high) {  // beyond the edge, but there
        const double edge = y < y_.low ? bottom() : kTop, way = y < y_.low ? -6 : 6;
        out_ += fmt::format("<path d=\"M{:.1f} {:.1f}l-3 {}h6z\"/>\n", px(x), edge, way);
        continue;
      }
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", px(x), py(y),
                          many ? "1.9" : "2.8");
    }
    out_ += "</g>\n";
  }

  void draw_failures(const PlotSeries& one, std::string_view color) {
    std::string path;
    for (const auto& [x, y] : one.points)
      if (drawable(x, 1))
        path += fmt::format("M{:.1f} {:.1f}l6 -6m0 6l-6 -6", px(x) - 3, bottom() - 2);
    out_ += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, color);
  }

  void draw_legend() {
    if (legend_ == 0) return;
    double y = kTop + 8;
    for (const PlotSeries& one : plot_.series) {
      if (one.name.empty() || y > bottom()) continue;
      const std::string_view color =
          kPalette[static_cast<std::size_t>(one.color) % kPalette.size()];
      if (one.style == PlotSeries::Style::points)
        out_ += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" "
            "fill-opacity=\"0.6\"/>\n",
            right_ + 24, y, color);
      else if (one.style == PlotSeries::Style::failures)
        out_ += fmt::format(
            "<path d=\"M{:.1f} {:.1f}l6 -6m0 6l-6 -6\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
            right_ + 21, y + 3, color);
      else
        out_ +=
            fmt::format("<path d=\"M{:.1f} {:.1f}h16\" stroke=\"{}\" stroke-width=\"2.6\"{}/>\n",
                        right_ + 16, y, color, one.dashed ? " stroke-dasharray=\"5 3\"" : "");
      text(right_ + 38, y + 4, shortened(one.name), "start");
      y += 20;
    }
  }

  const Plot& plot_;
  Axis x_, y_;
  double legend_ = 0, right_ = 0;
  bool empty_ = false;
  std::string out_;
};

}  // namespace

std::string svg_plot(const Plot& plot) { return Drawing(plot).svg(); }

}  // namespace kolo

#include "support/nas_ranks_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "support/ratios.h"

namespace bench {
namespace {

struct Cell {
  std::vector<double> validation, test;
};
struct Summary {
  double mean = 0, error = 0;  ///< standard error of the mean
};
/// By method, then by ranks.
using Cells = std::map<std::string, std::map<int, Cell>>;

Cells read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  Cells cells;
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    Cell& cell = cells[json.at("method")][json.at("ranks").get<int>()];
    cell.validation.push_back(json.at("validation"));
    cell.test.push_back(json.at("test"));
  }
  if (!cells.contains("age") || !cells.contains("agebo"))
    throw std::runtime_error(file + " lacks one of the methods");
  return cells;
}

Summary summary(const std::vector<double>& values) {
  Summary made;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) made.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - made.mean) * (value - made.mean);
  if (values.size() > 1) made.error = std::sqrt(squares / (count - 1) / count);
  return made;
}

std::string percent(const std::vector<double>& values) {
  const Summary all = summary(values);
  char text[64];
  std::snprintf(text, sizeof text, "%.2f ± %.2f", 100 * all.mean, 100 * all.error);
  return text;
}

std::string table(const Cells& cells) {
  std::string text =
      "| ranks per evaluation | AgE, validation % | AgEBO, validation % | AgE, test % | AgEBO, "
      "test "
      "% |\n|---|---|---|---|---|\n";
  for (const auto& [ranks, age] : cells.at("age")) {
    const Cell& agebo = cells.at("agebo").at(ranks);
    text += "| " + std::to_string(ranks) + " | " + percent(age.validation) + " | " +
            percent(agebo.validation) + " | " + percent(age.test) + " | " + percent(agebo.test) +
            " |\n";
  }
  return text;
}

// --- the plot
// -------------------------------------------------------------------------------------

constexpr double kWidth = 520, kHeight = 320, kLeft = 60, kRight = 50, kTop = 30, kBottom = 50;

class Plot {
 public:
  Plot(int ranks, double low, double high) : steps_(ranks - 1), low_(low), high_(high) {}

  [[nodiscard]] double x(int place) const {
    const double share = steps_ > 0 ? static_cast<double>(place) / steps_ : 0.5;
    return kLeft + 30 + share * (kWidth - kLeft - kRight - 60);
  }
  [[nodiscard]] double y(double value) const {
    return kHeight - kBottom - (value - low_) / (high_ - low_) * (kHeight - kTop - kBottom);
  }

 private:
  int steps_;
  double low_, high_;
};

std::string line(const char* format, double a, double b, double c, double d, const char* style) {
  char text[256];
  std::snprintf(text, sizeof text, format, a, b, c, d, style);
  return text;
}
constexpr const char* kLine = "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n";

std::string label(double x, double y, const std::string& text, const char* anchor) {
  char place[96];
  std::snprintf(place, sizeof place, "<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor);
  return place + text + "</text>\n";
}

std::string series(const Plot& plot, const std::map<int, Cell>& cells, const std::string& colour) {
  std::string text, path;
  int place = 0;
  for (const auto& [ranks, cell] : cells) {
    const Summary all = summary(cell.validation);
    const double x = plot.x(place), y = plot.y(all.mean);
    const std::string style = "stroke='" + colour + "' stroke-width='2'";
    text += line(kLine, x, plot.y(all.mean - all.error), x, plot.y(all.mean + all.error),
                 style.c_str());
    char dot[128];
    std::snprintf(dot, sizeof dot, "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", x, y,
                  colour.c_str());
    text += dot;
    char point[48];
    std::snprintf(point, sizeof point, "%s%.1f %.1f", place == 0 ? "M" : " L", x, y);
    path += point;
    ++place;
  }
  return text + "<path d='" + path + "' fill='none' stroke='" + colour + "' stroke-width='2'/>\n";
}

std::string drawing(const Cells& cells) {
  double low = 1, high = 0;
  for (const auto& [method, by_ranks] : cells)
    for (const auto& [ranks, cell] : by_ranks) {
      const Summary all = summary(cell.validation);
      low = std::min(low, all.mean - all.error);
      high = std::max(high, all.mean + all.error);
    }
  low = std::floor(100 * low - 0.5) / 100;
  high = std::min(1.0, std::ceil(100 * high + 0.5) / 100);
  const auto& ranks = cells.at("age");
  const Plot plot(static_cast<int>(ranks.size()), low, high);
  char head[200];
  std::snprintf(head, sizeof head,
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' "
                "font-family='sans-serif' font-size='13'>\n<rect width='100%%' height='100%%' "
                "fill='white'/>\n",
                kWidth, kHeight);
  std::string text = head;
  for (double value = low; value <= high + 1e-9; value += 0.01) {
    text += line(kLine, kLeft, plot.y(value), kWidth - kRight, plot.y(value), "stroke='#ddd'");
    char number[16];
    std::snprintf(number, sizeof number, "%.0f %%", 100 * value);
    text += label(kLeft - 8, plot.y(value) + 4, number, "end");
  }
  int place = 0;
  for (const auto& [count, cell] : ranks)
    text += label(plot.x(place++), kHeight - kBottom + 20, std::to_string(count), "middle");
  text += label(kWidth / 2, kHeight - 10, "ranks per evaluation", "middle");
  text +=
      label(kLeft, 18, "best validation accuracy of a search (mean and standard error)", "start");
  text += series(plot, cells.at("age"), "#c44");
  text += series(plot, cells.at("agebo"), "#26a");
  const double right = plot.x(static_cast<int>(ranks.size()) - 1) + 8;
  text += label(right, plot.y(summary(cells.at("age").rbegin()->second.validation).mean) + 4, "AgE",
                "start");
  text += label(right, plot.y(summary(cells.at("agebo").rbegin()->second.validation).mean) + 4,
                "AgEBO", "start");
  return text + "</svg>\n";
}

void write(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

}  // namespace

int report_ranks(const std::string& file, const std::string& markdown, const std::string& svg) {
  const Cells cells = read(file);
  const std::string text = table(cells);
  std::fputs(text.c_str(), stdout);
  write(markdown, text);
  write(svg, drawing(cells));
  const auto lost = [&](const char* method, int ranks) {
    const auto& by_ranks = cells.at(method);
    const auto found = by_ranks.find(ranks);
    if (found == by_ranks.end()) return std::nan("");
    return summary(by_ranks.begin()->second.validation).mean -
           summary(found->second.validation).mean;
  };
  Ratios ratios;
  ratios.print("age_accuracy_lost_with_4_ranks", lost("age", 4), ">=", 0.01);
  ratios.print("agebo_accuracy_lost_with_4_ranks", lost("agebo", 4), "<=", 0.005);
  ratios.print("agebo_share_of_what_age_lost_with_8_ranks", lost("agebo", 8) / lost("age", 8),
               "<=", 0.5);
  return 0;
}

}  // namespace bench

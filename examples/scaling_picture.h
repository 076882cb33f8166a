// Measured and ideal speed over the number of ranks, as an SVG picture.
#pragma once

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

namespace scaling {

struct Row {
  int ranks;
  double rate, spread;  // samples a second of all, and 1.96 deviations
};

/// The distance between ticks: 1, 2 or 5 times a power of ten, so that about five fit.
inline double round_step(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double times : {1.0, 2.0, 5.0})
    if (most / (power * times) <= 6) return power * times;
  return power * 10;
}

/// Error bars are 1.96 deviations; the percentage at each point is its efficiency.
inline std::string draw(const std::string& title, const std::vector<Row>& rows) {
  constexpr double kLeft = 70, kTop = 56, kWidth = 460, kHeight = 284;
  const double most_ranks = rows.back().ranks, one = rows.front().rate;
  double most = one * most_ranks;
  for (const Row& row : rows) most = std::max(most, row.rate + row.spread);
  const double step = round_step(most);
  most = std::ceil(most / step) * step;
  auto x = [&](double ranks) { return kLeft + kWidth * ranks / (most_ranks + 0.3); };
  auto y = [&](double rate) { return kTop + kHeight * (1 - rate / most); };
  std::ostringstream svg;
  auto line = [&svg](double x1, double y1, double x2, double y2, const char* style) {
    svg << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" "
        << style << "/>\n";
  };
  auto text = [&svg](double at, double down, const char* anchor, const std::string& words) {
    svg << "<text x=\"" << at << "\" y=\"" << down << "\" text-anchor=\"" << anchor << "\">"
        << words << "</text>\n";
  };
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 400\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"560\" height=\"400\" fill=\"white\"/>\n"
      << "<text x=\"280\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">" << title
      << "</text>\n";
  for (double tick = 0; tick <= most * (1 + 1e-9); tick += step) {
    line(kLeft, y(tick), kLeft + kWidth, y(tick), "stroke=\"#d5dce3\"");
    std::ostringstream number;
    number << std::setprecision(6) << tick;
    text(kLeft - 6, y(tick) + 4, "end", number.str());
  }
  line(x(1), y(one), x(most_ranks), y(one * most_ranks),
       "stroke=\"#54606c\" stroke-dasharray=\"5,4\"");
  svg << "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\" points=\"";
  for (const Row& row : rows) svg << x(row.ranks) << ',' << y(row.rate) << ' ';
  svg << "\"/>\n";
  for (const Row& row : rows) {
    const double low = std::max(0.0, row.rate - row.spread), high = row.rate + row.spread;
    line(x(row.ranks), y(low), x(row.ranks), y(high), "stroke=\"#1f5fa8\"");
    for (const double end : {low, high})
      line(x(row.ranks) - 4, y(end), x(row.ranks) + 4, y(end), "stroke=\"#1f5fa8\"");
    svg << "<circle cx=\"" << x(row.ranks) << "\" cy=\"" << y(row.rate)
        << "\" r=\"4\" fill=\"#1f5fa8\"/>\n";
    text(x(row.ranks), y(0) + 18, "middle", std::to_string(row.ranks));
    const double efficiency = 100 * row.rate / (one * row.ranks);
    text(x(row.ranks) + 8, y(row.rate) + 16, "start",
         std::to_string(std::lround(efficiency)) + " %");
  }
  text(kLeft + kWidth / 2, 385, "middle", "ranks");
  text(kLeft + 8, kTop - 6, "start",
       "samples per second; dashed: ideal; bars: 1.96 deviations; %: efficiency");
  svg << "</svg>\n";
  return svg.str();
}

}  // namespace scaling

#include "base/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kolo {
namespace {

/// 1, 2 or 5 times a power of ten, so that about so many fit into the range.
double round_step(double range, int about) {
  const double rough = range / std::max(1, about);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> log_marks(double low, double high, int about) {
  const auto first = static_cast<int>(std::floor(std::log10(low)));
  const auto last = static_cast<int>(std::ceil(std::log10(high)));
  const bool wide = last - first > 2;
  const int every = std::max(1, (last - first) / std::max(1, about));
  std::vector<double> marks;
  for (int exponent = first; exponent <= last; exponent += wide ? every : 1)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double mark = factor * std::pow(10, exponent);
      if (mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9)) marks.push_back(mark);
      if (wide) break;
    }
  return marks;
}

}  // namespace

double Axis::place(double value) const {
  if (log) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

std::vector<double> Axis::marks(int about) const {
  if (log) return log_marks(low, high, about);
  double step = round_step(high - low, about);
  if (whole) step = std::max(1.0, step);
  std::vector<double> marks;
  // By whole multiples, so that no error adds up, and 0 is 0.
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    marks.push_back(i * step);
  return marks;
}

Axis axis_around(const std::vector<double>& values, bool log, double margin) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return log ? Axis{1, 10, true} : Axis{0, 1, false};
  if (log) {
    const double factor = low == high ? 2 : std::pow(high / low, margin);
    return {low / factor, high * factor, true};
  }
  const double more = low == high ? std::max(0.5, std::abs(low) * 0.1) : (high - low) * margin;
  return {low - more, high + more, false};
}

std::string mark_text(double value, double distance) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:g}", value);
  const int decimals =
      distance > 0 ? std::clamp(static_cast<int>(-std::floor(std::log10(distance) + 1e-9)), 0, 8)
                   : 2;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t sign = text[0] == '-' ? 1 : 0;
  if (point - sign > 4)
    for (std::size_t at = point; at > sign + 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace kolo

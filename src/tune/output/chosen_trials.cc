#include "tune/output/chosen_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/hash.h"

namespace kolo::tune {
namespace {

/// Differs from trial to trial without a pattern.
std::uint64_t lot(std::int64_t number) {
  return hash_combine(0, static_cast<std::uint64_t>(number));
}

}  // namespace

std::vector<std::int64_t> chosen_trials(std::span<const double> badness, std::size_t most) {
  std::vector<std::int64_t> all(badness.size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return chosen_trials(std::move(all), badness, most);
}

std::vector<std::int64_t> chosen_trials(std::vector<std::int64_t> among,
                                        std::span<const double> badness, std::size_t most) {
  if (among.size() <= most) {
    std::sort(among.begin(), among.end());
    return among;
  }
  const auto bad = [&](std::int64_t number) {
    const double value = badness[static_cast<std::size_t>(number)];
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  const auto half = among.begin() + static_cast<std::ptrdiff_t>(most / 2);
  std::nth_element(among.begin(), half, among.end(), [&](std::int64_t left, std::int64_t right) {
    const double a = bad(left), b = bad(right);
    return a < b || (a == b && left < right);
  });
  const auto end = among.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(half, end, among.end(),
                   [](std::int64_t left, std::int64_t right) { return lot(left) < lot(right); });
  among.erase(end, among.end());
  std::sort(among.begin(), among.end());
  return among;
}

}  // namespace kolo::tune

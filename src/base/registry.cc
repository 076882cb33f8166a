#include "base/registry.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"

namespace kolo {
namespace {

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view nearest;
  // A third of the letters may be wrong, one in short names.
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : known) {
    // Each letter that one has more than the other is wrong. Names from outside may be long.
    if (name.size() > candidate.size() + best || candidate.size() > name.size() + best) continue;
    std::size_t d = distance(name, candidate);
    // Of equally near names the one that is only unfinished: "tun" is "tune" rather than "run".
    const bool completes =
        d == best && candidate.starts_with(name) && !nearest.empty() && !nearest.starts_with(name);
    if (d < best || completes) {
      best = d;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string unknown_name(std::string_view family, std::string_view name,
                         const std::vector<std::string_view>& known) {
  std::string_view nearest = nearest_name(name, known);
  std::string hint = nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest);
  std::string list =
      known.empty() ? "none is known" : fmt::format("known: {}", fmt::join(known, ", "));
  return fmt::format("{} '{}' is unknown; {}{}", family, name, hint, list);
}

void throw_unknown_name(std::string_view family, std::string_view name,
                        const std::vector<std::string_view>& known, ErrorCode code) {
  throw Error(code, unknown_name(family, name, known));
}

}  // namespace kolo

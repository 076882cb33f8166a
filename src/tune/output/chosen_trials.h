// Which trials a page draws of a study that has more of them than it can draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kolo::tune {

/// At most so many of the trials in `among`, ascending: half of them the best, the others as if by
/// lot, but by the same lot each time. A page that follows a study then has one trial more and one
/// less to draw when one gets better, instead of others throughout. `badness` is by number of
/// trial: less is better, and NaN is worst. Linear in the number of trials.
[[nodiscard]] std::vector<std::int64_t> chosen_trials(std::vector<std::int64_t> among,
                                                      std::span<const double> badness,
                                                      std::size_t most);
/// The same of all trials.
[[nodiscard]] std::vector<std::int64_t> chosen_trials(std::span<const double> badness,
                                                      std::size_t most);

}  // namespace kolo::tune

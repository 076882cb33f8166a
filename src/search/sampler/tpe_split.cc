#include "search/sampler/tpe_split.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace kolo::search {
namespace {

constexpr std::size_t kMostRunning = 64;

std::uint64_t hash_place(std::uint64_t place) {
  place = (place + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  place = (place ^ (place >> 29)) * 0x94d049bb133111eb;
  return place ^ (place >> 32);
}

}  // namespace

void TpeSplit::add(std::span<const Trial> trials, std::size_t place) {
  ranking_.add(trials, place);
  sample_.emplace(hash_place(place), place);
  // Room for those that turn out to be good or among the best of the bad.
  if (sample_.size() > 2 * max_bad + max_good) sample_.erase(std::prev(sample_.end()));
}

TpeSplit::Groups TpeSplit::groups(std::span<const Trial> trials,
                                  const std::vector<std::size_t>& running) const {
  const std::size_t count = ranking_.size();
  const auto wanted = static_cast<std::size_t>(std::ceil(gamma * static_cast<double>(count)));
  const std::size_t good = std::clamp<std::size_t>(wanted, 1, std::min(max_good, count));
  const bool all = count - good <= max_bad;

  Groups groups;
  const auto best = ranking_.best(trials, all ? count : good + max_bad / 2);
  groups.good.assign(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(good));
  groups.bad.assign(best.begin() + static_cast<std::ptrdiff_t>(good), best.end());
  // The better, the heavier: half a rank below all others would be worth nothing (as CMA-ES does).
  for (std::size_t rank = 0; rank < good; ++rank) {
    const double weight =
        std::log(static_cast<double>(good) + 0.5) - std::log(static_cast<double>(rank) + 0.5);
    groups.good_weights.push_back(by_rank ? static_cast<float>(weight) : 1.0F);
  }
  groups.bad_weights.assign(groups.bad.size(), 1.0F);
  if (!all) {
    const std::unordered_set<std::size_t> taken(best.begin(), best.end());
    const std::size_t before = groups.bad.size();
    for (const auto& [hash, place] : sample_) {
      if (groups.bad.size() == max_bad) break;
      if (!taken.contains(place)) groups.bad.push_back(place);
    }
    const std::size_t sampled = groups.bad.size() - before;
    const float weight =
        sampled == 0 ? 1.0F : static_cast<float>(count - best.size()) / static_cast<float>(sampled);
    groups.bad_weights.resize(groups.bad.size(), weight);
  }
  const std::size_t shown = std::min(running.size(), kMostRunning);
  groups.bad.insert(groups.bad.end(), running.end() - static_cast<std::ptrdiff_t>(shown),
                    running.end());
  groups.bad_weights.resize(
      groups.bad.size(),
      shown == 0 ? 1.0F : static_cast<float>(running.size()) / static_cast<float>(shown));
  return groups;
}

}  // namespace kolo::search

// How the ranks of a study are shared out to its trials. Pure functions of what they are shown:
// the same shares give the same answer.
//
// All of them give every trial at least RankRange::least and at most RankRange::most. Among trials
// that have the same claim, one that has more ranks already comes first, so that workers do not
// move for nothing; then the older one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/errors.h"
#include "tune/study/rank_sharing.h"

namespace kolo::tune {
namespace {

/// Best first; a trial without a value comes last.
double claim_of(const TrialShare& trial, search::Direction direction) {
  if (!trial.value || !std::isfinite(*trial.value)) return std::numeric_limits<double>::infinity();
  return direction == search::Direction::minimize ? *trial.value : -*trial.value;
}

/// Places of the trials, first the one with the best claim.
template <class Claim>
std::vector<std::size_t> in_order(const RankShares& shares, Claim claim) {
  std::vector<std::size_t> order(shares.trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto &left = shares.trials[a], &right = shares.trials[b];
    const double x = claim(left), y = claim(right);
    return x != y ? x < y : left.ranks > right.ranks;
  });
  return order;
}

int left_over(const RankShares& shares, const std::vector<int>& ranks) {
  return shares.ranks - std::accumulate(ranks.begin(), ranks.end(), 0);
}

std::vector<int> distribute(const RankShares& shares) {
  std::vector<int> ranks(shares.trials.size(), shares.range.least);
  const auto order = in_order(shares, [](const TrialShare&) { return 0.0; });
  for (int left = left_over(shares, ranks); left > 0;) {
    const int before = left;
    for (const std::size_t i : order)
      if (left > 0 && ranks[i] < shares.range.most) ++ranks[i], --left;
    if (left == before) break;
  }
  return ranks;
}

std::vector<int> distribute_to_top_job(const RankShares& shares) {
  std::vector<int> ranks(shares.trials.size(), shares.range.least);
  int left = std::max(0, left_over(shares, ranks));
  for (const std::size_t i :
       in_order(shares, [&](const auto& trial) { return claim_of(trial, shares.direction); })) {
    const int more = std::min(left, shares.range.most - ranks[i]);
    ranks[i] += more;
    left -= more;
  }
  return ranks;
}

std::vector<int> reuse(const RankShares& shares) {
  std::vector<int> ranks;
  for (const auto& trial : shares.trials) ranks.push_back(trial.ranks);
  const auto order =
      in_order(shares, [&](const auto& trial) { return claim_of(trial, shares.direction); });
  int left = left_over(shares, ranks);
  for (const std::size_t i : order) {
    const int more = std::clamp(left, 0, std::max(0, shares.range.most - ranks[i]));
    ranks[i] += more;
    left -= more;
  }
  // Others wait for places: the worst give back first.
  for (auto i = order.rbegin(); i != order.rend() && left < 0; ++i) {
    const int fewer = std::min(-left, ranks[*i] - shares.range.least);
    ranks[*i] -= fewer;
    left += fewer;
  }
  return ranks;
}

}  // namespace

ResourceAllocation DistributeResources() { return distribute; }
ResourceAllocation DistributeResourcesToTopJob() { return distribute_to_top_job; }
ResourceAllocation ReuseWorkers() { return reuse; }

Scheduling ResourceChangingScheduler(Scheduling base_scheduler, ResourceAllocation allocation) {
  base_scheduler.allocation = std::move(allocation);
  return base_scheduler;
}

ResourceAllocation allocation_of(const Options& options) {
  const Scheduling& scheduling = options.scheduler;
  const auto [least, most] = options.resources_per_trial.ranks;
  bool reuses = false;
  if (const auto setting = scheduling.settings.find(kReuseWorkers);
      setting != scheduling.settings.end()) {
    if (!setting->second.is_bool())
      throw_error(ErrorCode::invalid_argument, "{} is true or false, not {}", kReuseWorkers,
                  setting->second.to_string());
    reuses = setting->second.as_bool();
  }
  if (most == 0 && least == 0) {
    if (reuses || scheduling.allocation)
      throw_error(ErrorCode::invalid_argument,
                  "workers can move between trials only if the number of ranks of a trial is a "
                  "range, such as 1 to 4");
    return {};
  }
  if (least < 1 || most < least)
    throw_error(ErrorCode::invalid_argument,
                "a trial cannot have {} to {} ranks; the range begins with 1 or more and ends with "
                "no less",
                least, most);
  if (reuses && scheduling.allocation)
    throw_error(ErrorCode::invalid_argument, "give either {} or an allocation of ranks, not both",
                kReuseWorkers);
  if (scheduling.allocation) return scheduling.allocation;
  return reuses ? ReuseWorkers() : DistributeResources();
}

}  // namespace kolo::tune

// Parameters are placed in the order in which backward produces their gradients. There is one open
// bucket for each combination of type and group; a parameter that does not fit closes it and opens
// the next. Buckets are then sorted by the place of their last member, which is the order in which
// they become complete.
#include "engine/bucket_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/hash.h"

namespace kolo::runtime {
namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint64_t fingerprint_of(const BucketPlan& plan) {
  std::uint64_t sum = hash_combine(plan.buckets.size(), 17);
  for (const auto& bucket : plan.buckets) {
    sum = hash_combine(sum, bucket.count * 16 + static_cast<std::uint64_t>(bucket.type));
    for (const auto& member : bucket.members)
      sum = hash_combine(hash_combine(sum, member.parameter), member.offset);
  }
  return sum | 1;
}

}  // namespace

BucketPlan make_bucket_plan(std::span<const ParameterInfo> parameters,
                            std::span<const std::uint32_t> order, const BucketRules& rules) {
  struct Open {
    BucketPlan::Bucket bucket;
    std::size_t bytes = 0;
    std::size_t complete_at = 0;  // place of its last member in the order
  };
  using Key = std::tuple<DataType, int, int>;  // what may share a bucket
  std::map<Key, Open> open;
  std::vector<Open> closed;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const ParameterInfo& parameter = parameters[order[place]];
    if (parameter.is_sparse) continue;
    const std::size_t element = size_of(parameter.type);
    const Key key{parameter.type, rules.shards > 0 ? parameter.optimizer_group : 0,
                  parameter.user_group};
    // Members begin on cache lines: their copies and slices are then aligned.
    const std::size_t count = rounded_up(parameter.count * element, kLine) / element;
    auto current = open.find(key);
    if (current != open.end() && parameter.user_group < 0 &&
        current->second.bytes + count * element > rules.bucket_bytes) {
      closed.push_back(std::move(current->second));
      open.erase(current);
      current = open.end();
    }
    if (current == open.end()) current = open.emplace(key, Open{}).first;
    Open& into = current->second;
    into.bucket.type = parameter.type;
    into.bucket.optimizer_group = parameter.optimizer_group;
    into.bucket.members.push_back({order[place], into.bucket.count});
    into.bucket.count += count;
    into.bytes += count * element;
    into.complete_at = place;
  }
  for (auto& [key, last] : open) closed.push_back(std::move(last));
  std::sort(closed.begin(), closed.end(),
            [](const Open& a, const Open& b) { return a.complete_at < b.complete_at; });
  BucketPlan plan;
  for (Open& next : closed) {
    if (rules.shards > 0)
      next.bucket.count = rounded_up(next.bucket.count, static_cast<std::size_t>(rules.shards) *
                                                            (kLine / size_of(next.bucket.type)));
    plan.buckets.push_back(std::move(next.bucket));
  }
  plan.fingerprint = fingerprint_of(plan);
  return plan;
}

std::string describe(std::span<const ParameterInfo> parameters) {
  std::string text;
  for (const auto& parameter : parameters)
    text += fmt::format("{} {}[{}] in group {}, {}\n", parameter.name, to_string(parameter.type),
                        fmt::join(parameter.shape, ", "), parameter.optimizer_group,
                        parameter.user_group);
  return text;
}

}  // namespace kolo::runtime

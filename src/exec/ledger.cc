#include "exec/ledger.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/plural.h"
#include "base/text_table.h"

namespace kolo::exec {
namespace {

/// The lowest numbers below `count` that no grant has.
std::vector<int> take_free(int count, int wanted,
                           const std::map<Ledger::Key, Ledger::Grant>& grants,
                           std::vector<int> Ledger::Grant::*of) {
  std::vector<int> taken, chosen;
  for (const auto& [key, grant] : grants)
    taken.insert(taken.end(), (grant.*of).begin(), (grant.*of).end());
  for (int number = 0; number < count && static_cast<int>(chosen.size()) < wanted; ++number)
    if (std::find(taken.begin(), taken.end(), number) == taken.end()) chosen.push_back(number);
  return chosen;
}

bool fits(const Amounts& want, const Amounts& room) {
  constexpr double kRounding = 1e-9;  // of sums of parts
  return want.slots <= room.slots && want.gpus <= room.gpus &&
         std::all_of(want.named.begin(), want.named.end(), [&](const auto& entry) {
           const auto found = room.named.find(entry.first);
           return entry.second <= (found == room.named.end() ? 0 : found->second) + kRounding;
         });
}

}  // namespace

std::string describe(const Amounts& amounts) {
  std::vector<std::string> parts = {counted(amounts.slots, "slot")};
  if (amounts.gpus > 0) parts.push_back(counted(amounts.gpus, "GPU"));
  for (const auto& [name, amount] : amounts.named)
    parts.push_back(fmt::format("{} {}", short_number(amount), name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Ledger::Ledger(Amounts total, std::vector<int> processors)
    : total_(std::move(total)), processors_(std::move(processors)) {
  if (total_.slots > static_cast<int>(processors_.size())) processors_.clear();
}

std::optional<std::string> Ledger::reserve(Key key, const std::string& owner, const Amounts& want) {
  const bool is_negative = want.slots < 0 || want.gpus < 0 ||
                           std::any_of(want.named.begin(), want.named.end(),
                                       [](const auto& entry) { return !(entry.second >= 0); });
  if (is_negative) throw_error(ErrorCode::invalid_argument, "less than nothing cannot be reserved");
  if (grants_.contains(key))
    throw_error(ErrorCode::already_exists, "reservation {} exists already", key.second);
  if (is_draining_) return "the host is drained: it takes nothing new";
  if (!fits(want, total_))
    return fmt::format("wanted: {}; the host has {}", describe(want), describe(total_));
  if (const Amounts room = free(); !fits(want, room))
    return fmt::format("wanted: {}; free: {}; {}", describe(want), describe(room), holders());
  auto slots = take_free(total_.slots, want.slots, grants_, &Grant::slots);
  auto gpus = take_free(total_.gpus, want.gpus, grants_, &Grant::gpus);
  Grant grant{{owner, want, {}}, std::move(slots), std::move(gpus)};
  if (!processors_.empty())
    for (const int slot : grant.slots)
      grant.holding.processors.push_back(processors_[static_cast<std::size_t>(slot)]);
  grants_.emplace(key, std::move(grant));
  return std::nullopt;
}

void Ledger::give_back(Key key) {
  const auto found = grants_.find(key);
  if (found != grants_.end()) found->second.is_over = true;
}

void Ledger::give_back_all(OwnerId owner) {
  for (auto& [key, grant] : grants_)
    if (key.first == owner) grant.is_over = true;
}

const Ledger::Grant* Ledger::find(Key key) const {
  const auto found = grants_.find(key);
  return found == grants_.end() || found->second.is_over ? nullptr : &found->second;
}

Amounts Ledger::free() const {
  Amounts room = total_;
  for (const auto& [key, grant] : grants_) {
    room.slots -= grant.holding.amounts.slots;
    room.gpus -= grant.holding.amounts.gpus;
    for (const auto& [name, amount] : grant.holding.amounts.named) room.named[name] -= amount;
  }
  return room;
}

std::string Ledger::holders() const {
  std::vector<std::string> all;
  for (const auto& [key, grant] : grants_)
    all.push_back(fmt::format("{} has {}", grant.holding.owner, describe(grant.holding.amounts)));
  return fmt::format("{}", fmt::join(all, ", "));
}

Holdings Ledger::holdings() const {
  Holdings all{total_, free(), is_draining_, {}};
  for (const auto& [key, grant] : grants_) all.held.push_back(grant.holding);
  return all;
}

}  // namespace kolo::exec

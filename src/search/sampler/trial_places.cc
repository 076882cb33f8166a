#include "kolo/search/trial_places.h"

namespace kolo::search {

bool TrialPlaces::add(TrialId id, std::uint32_t place) {
  constexpr std::uint64_t kGap = 64;  // so far ahead of their number ids may run
  if (find(id)) return false;
  const auto number = static_cast<std::uint64_t>(id);
  if (number >= by_number_.size() && number <= count_ + kGap) by_number_.resize(number + 1, kNone);
  if (number < by_number_.size())
    by_number_[number] = place;
  else
    others_.emplace(number, place);
  ++count_;
  return true;
}

void TrialPlaces::remove(TrialId id) {
  if (!find(id)) return;
  const auto number = static_cast<std::uint64_t>(id);
  if (others_.erase(number) == 0) by_number_[number] = kNone;
  --count_;
}

std::optional<std::uint32_t> TrialPlaces::find(TrialId id) const {
  const auto number = static_cast<std::uint64_t>(id);
  if (number < by_number_.size() && by_number_[number] != kNone) return by_number_[number];
  const auto found = others_.find(number);
  return found == others_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace kolo::search

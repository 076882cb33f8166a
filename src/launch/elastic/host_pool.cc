#include "launch/elastic/host_pool.h"

#include <algorithm>
#include <cmath>

namespace kolo::launch::elastic {

void HostPool::set(std::vector<Host> hosts) {
  std::erase_if(avoided_, [&](const std::string& name) {
    return std::none_of(hosts.begin(), hosts.end(),
                        [&](const Host& host) { return host.name == name; });
  });
  // Older hosts keep their place, so that ranks are as stable as they can be.
  std::stable_sort(hosts.begin(), hosts.end(), [&](const Host& a, const Host& b) {
    return contains(a.name) && !contains(b.name);
  });
  hosts_ = std::move(hosts);
}

bool HostPool::contains(const std::string& host) const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const Host& known) { return known.name == host; });
}

bool HostPool::is_usable(const std::string& host, Time now) const {
  if (avoided_.contains(host)) return false;
  const auto rest = blacklist_.find(host);
  if (rest == blacklist_.end()) return true;
  return rest->second.until && *rest->second.until <= now;
}

std::optional<HostPool::Slot> HostPool::take(Time now) {
  for (const Host& host : hosts_) {
    if (!is_usable(host.name, now)) continue;
    auto& taken = taken_[host.name];
    for (int index = 0; index < host.slots; ++index)
      if (taken.insert(index).second) return Slot{host.name, index, host.slots};
  }
  return std::nullopt;
}

bool HostPool::has(const Slot& slot) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const Host& host) {
    return host.name == slot.host && slot.index < host.slots;
  });
}

void HostPool::give_back(const Slot& slot) { taken_[slot.host].erase(slot.index); }

void HostPool::blacklist(const std::string& host, Time now) {
  Rest& rest = blacklist_[host];
  if (rest.failures > 0 && !is_usable(host, now)) return;  // several workers of one failure
  if (cooldown_) {
    const auto low = static_cast<double>(cooldown_->low.count());
    const double wanted = low * std::exp2(rest.failures) + draw_() * low;
    rest.until = now + Time(static_cast<Time::rep>(
                           std::clamp(wanted, low, static_cast<double>(cooldown_->high.count()))));
  }
  ++rest.failures;
}

std::optional<Time> HostPool::next_return(Time now) const {
  std::optional<Time> next;
  for (const auto& [host, rest] : blacklist_)
    if (rest.until && *rest.until > now && contains(host) && !avoided_.contains(host))
      next = std::min(next.value_or(*rest.until), *rest.until);
  return next;
}

std::string HostPool::describe_unusable(Time now) const {
  std::string text;
  for (const Host& host : hosts_) {
    if (is_usable(host.name, now)) continue;
    text += (text.empty() ? "" : ", ") + host.name;
    text += avoided_.contains(host.name) ? " (asked to leave)" : " (a worker failed there)";
  }
  return text;
}

}  // namespace kolo::launch::elastic

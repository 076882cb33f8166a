// place() gives ranks to hosts in passes: a packed pass fills each host before the next one, an
// even pass gives one rank to each host with room. It ends because the room is counted first. The
// counts rest on what hosts have said last, which may be out of date. Therefore reserve_ranks()
// asks the hosts for a gang; after a refusal it waits for news and places again, until the
// deadline. Each time it first places the ranks as if everything were free, so that a request that
// can never be met fails at once.
#include "cluster/placing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "base/plural.h"

namespace kolo::cluster {
namespace {

/// Of a link that serves one run.
constexpr exec::ReservationId kReservation = 1;

std::string who_has_what(const std::vector<LinkedMember>& members) {
  std::vector<std::string> lines;
  for (const auto& linked : members) {
    if (!linked.answers()) {
      lines.push_back(fmt::format("{} is lost ({})", linked.member.host, linked.error));
      continue;
    }
    std::string line = fmt::format("{} has {} free of {}", linked.member.host,
                                   linked.holdings.free.slots, linked.holdings.total.slots);
    if (linked.holdings.is_draining) line += ", and is drained";
    for (const auto& held : linked.holdings.held)
      line += fmt::format("; {} has {}", held.owner, exec::describe(held.amounts));
    lines.push_back(std::move(line));
  }
  return fmt::format("{}", fmt::join(lines, ". "));
}

std::vector<exec::Holdings> holdings_of(const std::vector<LinkedMember>& members) {
  std::vector<exec::Holdings> all;
  for (const auto& linked : members)
    all.push_back(linked.answers() ? linked.holdings : exec::Holdings{});
  return all;
}

/// As if nobody had anything.
std::vector<exec::Holdings> when_free(std::vector<exec::Holdings> hosts) {
  for (auto& host : hosts) host.free = host.total;
  return hosts;
}

constexpr auto kReserveTime = std::chrono::seconds(10);

/// Whether all of it was reserved; `why` says why not.
bool try_to_reserve(std::vector<LinkedMember>& members, const std::vector<int>& counts,
                    const exec::Amounts& each, Deadline answer_by, std::string& why) {
  std::vector<Gang::Part> parts;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (counts[i] > 0) parts.push_back({members[i].link.get(), times(each, counts[i])});
  Gang gang(std::move(parts), kReservation);
  const auto on_event = [&gang](LinkedMember& linked, const exec::Event& event) {
    gang.take(linked.link.get(), event);
  };
  while (gang.state() == Gang::State::asking) {
    const bool came = wait_for_any(members, answer_by, on_event);
    for (const auto& linked : members)
      if (!linked.answers() && linked.link) gang.lose(linked.link.get());
    if (!came && answer_by.passed()) {
      why = "a host does not answer";
      return false;
    }
  }
  why = gang.refusal();
  if (gang.state() != Gang::State::granted) return false;
  gang.keep();
  for (const auto& linked : members)
    if (linked.answers()) linked.link->use_reservation(kReservation);
  return true;
}

}  // namespace

exec::Amounts times(const exec::Amounts& each, int ranks) {
  exec::Amounts all{each.slots * ranks, each.gpus * ranks, {}};
  for (const auto& [name, amount] : each.named) all.named[name] = amount * ranks;
  return all;
}

int room_for(const exec::Holdings& host, const exec::Amounts& each) {
  if (host.is_draining) return 0;
  double room = each.slots > 0 ? host.free.slots / each.slots : host.free.slots;
  if (each.gpus > 0) room = std::min(room, std::floor(double(host.free.gpus) / each.gpus));
  for (const auto& [name, amount] : each.named) {
    if (amount <= 0) continue;
    const auto found = host.free.named.find(name);
    room = std::min(room, found == host.free.named.end() ? 0 : std::floor(found->second / amount));
  }
  return std::max(0, static_cast<int>(room));
}

std::vector<int> place(const std::vector<exec::Holdings>& hosts, int ranks,
                       const exec::Amounts& each, Spread spread) {
  std::vector<int> room, counts(hosts.size(), 0);
  for (const auto& host : hosts) room.push_back(room_for(host, each));
  if (std::accumulate(room.begin(), room.end(), 0LL) < ranks) return {};
  int left = ranks;
  while (left > 0) {
    for (std::size_t i = 0; i < hosts.size() && left > 0; ++i) {
      const int most = spread == Spread::packed ? left : 1;
      const int taken = std::min(most, room[i] - counts[i]);
      counts[i] += taken;
      left -= taken;
    }
  }
  return counts;
}

std::vector<int> reserve_ranks(std::vector<LinkedMember>& members, int ranks,
                               const exec::Amounts& each, Spread spread, Deadline deadline) {
  for (;;) {
    // A host that is lost meanwhile does not come back to these links.
    if (auto all = holdings_of(members);
        place(when_free(std::move(all)), ranks, each, spread).empty())
      throw_error(ErrorCode::unavailable, "the cluster has too few slots for {}: {}",
                  counted(ranks, "rank"), who_has_what(members));
    std::string why;
    const auto counts = place(holdings_of(members), ranks, each, spread);
    if (!counts.empty() &&
        try_to_reserve(members, counts, each, Deadline::after(kReserveTime), why))
      return counts;
    if (deadline.passed())
      throw_error(ErrorCode::unavailable, "too few slots are free for {}: {}",
                  counted(ranks, "rank"), why.empty() ? who_has_what(members) : why);
    wait_for_any(members, deadline);
  }
}

std::vector<std::size_t> reserve_whole_hosts(std::vector<LinkedMember>& members, std::size_t most) {
  std::vector<std::size_t> reserved;
  for (std::size_t i = 0; i < members.size() && reserved.size() < most; ++i) {
    const auto& linked = members[i];
    if (!linked.answers() || linked.holdings.is_draining || !linked.holdings.held.empty()) continue;
    std::vector<int> counts(members.size(), 0);
    counts[i] = 1;
    std::string why;
    const auto all = linked.holdings.total;
    if (try_to_reserve(members, counts, all, Deadline::after(kReserveTime), why))
      reserved.push_back(i);
  }
  if (reserved.empty())
    throw_error(ErrorCode::unavailable, "no host of the cluster is free: {}",
                who_has_what(members));
  return reserved;
}

}  // namespace kolo::cluster

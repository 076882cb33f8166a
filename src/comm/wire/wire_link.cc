// Who is to blame: when an operation fails, settle() asks the messenger to exchange farewells, in
// which every member names the one it waited for (statements.h), and takes the one at the end of
// the chain. If the launcher reports that this member died because of an earlier death, the earlier
// one is named.
//
// The launcher's news of a death aborts the messenger after a grace time, so that messages which
// the dead rank had already sent are still received.
#include "comm/wire/wire_link.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::comm {
namespace {

/// What a dead rank had sent before it died is still let in for this long.
constexpr std::chrono::milliseconds kGrace{200};
/// A connection usually closes a little before the launcher says why.
constexpr std::chrono::milliseconds kNewsDelay{200};

}  // namespace

WireLink::WireLink(std::unique_ptr<Messenger> messenger, int me, const WireOptions& options)
    : messenger_(std::move(messenger)),
      me_(me),
      options_(options),
      watch_(std::make_shared<Watch>()) {
  if (options_.liveness == nullptr) return;
  listener_ = options_.liveness->listen(
      [this, weak = std::weak_ptr<Watch>(watch_)](const Departure& departure) {
        // The link is alive while its watch is not closing; on_departure looks under the lock.
        if (auto watch = weak.lock()) on_departure(*watch, departure);
      });
}

WireLink::~WireLink() {
  if (options_.liveness != nullptr) options_.liveness->unlisten(listener_);
  {
    MutexLock lock(watch_->mutex);
    watch_->is_closing = true;
  }
  watch_->changed.notify_all();
  if (watch_->grace.joinable()) watch_->grace.join();
}

int WireLink::member_of(int world_rank) const noexcept {
  const auto& ranks = options_.world_ranks;
  const auto it = std::find(ranks.begin(), ranks.end(), world_rank);
  return it == ranks.end() ? -1 : static_cast<int>(it - ranks.begin());
}

void WireLink::on_departure(Watch& watch, const Departure& departure) {
  MutexLock lock(watch.mutex);
  watch.changed.notify_all();
  if (watch.is_closing || watch.unclean) return;
  const int member = member_of(departure.rank);
  // Whoever has not failed may be through with its work: that shows when its connection is needed.
  if (member < 0 || member == me_ || departure.kind != DepartureKind::failed) return;
  watch.unclean = Loss{member, departure.reason};
  watch.grace = std::thread([this, &watch, member, reason = departure.reason] {
    MutexLock waiting(watch.mutex);
    if (watch.changed.wait_for(waiting, kGrace,
                               [&]() KOLO_REQUIRES(watch.mutex) { return watch.is_closing; }))
      return;
    waiting.unlock();
    messenger_->abort(member, reason);
  });
}

void WireLink::settle(const Error& error) {
  if (loss_) return;
  int suspect = error.rank().value_or(me_ == 0 ? 1 : 0);
  {
    MutexLock lock(watch_->mutex);
    if (watch_->unclean) suspect = watch_->unclean->member;
  }
  int lost = messenger_->farewell(suspect,
                                  Deadline::after(options_.timeout - wait_limit(options_.timeout)));
  // A member that is gone may have gone because of another that went before it.
  if (reason_of_departure(lost))
    if (const int first = first_death(lost); first >= 0) lost = first;
  loss_ = Loss{lost,
               reason_of_departure(lost).value_or(
                   lost == error.rank() ? error.message() : "other ranks waited for it too long")};
}

/// The member that died first, or -1. One that has finished was through with its work. One of which
/// nobody knows yet why it went counts if the members have given up that very one.
int WireLink::first_death(int given_up) const {
  for (const Departure& departure : options_.liveness->departures()) {
    const int member = member_of(departure.rank);
    if (member < 0 || member == me_ || departure.kind == DepartureKind::finished) continue;
    if (departure.kind == DepartureKind::failed || member == given_up) return member;
  }
  return -1;
}

/// What the launcher says, if it says something soon.
std::optional<std::string> WireLink::reason_of_departure(int member) {
  if (options_.liveness == nullptr) return std::nullopt;
  const auto known = [&] { return options_.liveness->departure_of(options_.world_ranks[member]); };
  MutexLock lock(watch_->mutex);
  watch_->changed.wait_for(lock, kNewsDelay, [&] { return known().has_value(); });
  return known();
}

std::optional<int> WireLink::lost_member() const {
  if (options_.liveness == nullptr) return std::nullopt;
  for (const Departure& departure : options_.liveness->departures())
    if (const int member = member_of(departure.rank); member >= 0 && member != me_) return member;
  return std::nullopt;
}

void WireLink::throw_if_broken(std::string_view operation) const {
  if (!loss_) return;
  throw Error(ErrorCode::peer_lost,
              fmt::format("{}: rank {} is lost: {}", operation, options_.world_ranks[loss_->member],
                          loss_->reason),
              loss_->member);
}

}  // namespace kolo::comm

// A meeting is known by its key and its list of members, and has a seat for each of them. come()
// fills a seat; when all are filled, everybody gets the same answer and the meeting is removed. A
// departure fails every meeting that has the departed rank as a member.
#include "comm/rendezvous/meeting_book.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::comm::rendezvous {
namespace {

std::shared_ptr<const std::string> shared_frame(Message type, std::string_view payload) {
  return std::make_shared<const std::string>(frame(type, payload));
}
std::shared_ptr<const std::string> failure_frame(const Failure& failure) {
  return shared_frame(Message::failure, encode(failure));
}

}  // namespace

std::optional<Failure> MeetingBook::refusal(int rank, const Meet& request) const {
  auto wrong = [&](std::string text) {
    return Failure{ErrorCode::invalid_argument, -1,
                   fmt::format("meeting '{}': {}", request.key, text)};
  };
  if (request.key.size() > kKeyLimit) return wrong("the key is too long");
  std::vector<int> sorted = request.members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return wrong("a member is listed twice");
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= size_)
    return wrong(fmt::format("members must be ranks of 0…{}", size_ - 1));
  if (!std::binary_search(sorted.begin(), sorted.end(), rank))
    return wrong(fmt::format("rank {} is not a member", rank));
  for (const auto& gone : departures_)
    if (std::binary_search(sorted.begin(), sorted.end(), gone.rank))
      return Failure{ErrorCode::peer_lost, gone.rank, gone.reason};
  return std::nullopt;
}

MeetingBook::Replies MeetingBook::come(Guest guest, int rank, Meet request, Time now) {
  if (waiting_.contains(guest))
    throw_error(ErrorCode::corruption, "a second request before the answer to the first");
  if (auto failure = refusal(rank, request)) return {{guest, failure_frame(*failure)}};

  Name name{std::move(request.key), std::move(request.members)};
  auto meeting = meetings_.try_emplace(name, name.second.size()).first;
  const auto index = std::find(name.second.begin(), name.second.end(), rank) - name.second.begin();
  Seat& seat = meeting->second[static_cast<std::size_t>(index)];
  Replies replies;
  if (seat.guest != 0) {
    replies.push_back({seat.guest, failure_frame({ErrorCode::cancelled, rank,
                                                  "the same rank entered this meeting again"})});
    waiting_.erase(seat.guest);
  }
  seat = {guest, std::move(request.mine), now + request.patience};
  waiting_[guest] = meeting;

  const bool complete = std::all_of(meeting->second.begin(), meeting->second.end(),
                                    [](const Seat& s) { return s.guest != 0; });
  if (!complete) return replies;
  std::vector<std::string> brought;
  for (Seat& s : meeting->second) brought.push_back(std::move(s.brought));
  auto answer = shared_frame(Message::met, encode_met(brought));
  // Rank 0 last: where it hosts this book, it may end its process as soon as it has its answer.
  std::vector<std::pair<int, Guest>> guests;
  for (std::size_t i = 0; i < meeting->second.size(); ++i)
    guests.emplace_back(name.second[i], meeting->second[i].guest);
  std::sort(guests.rbegin(), guests.rend());
  for (const auto& [member, waiting] : guests) {
    replies.push_back({waiting, answer});
    waiting_.erase(waiting);
  }
  meetings_.erase(meeting);
  return replies;
}

void MeetingBook::drop_if_empty(std::map<Name, Meeting>::iterator meeting) {
  if (std::all_of(meeting->second.begin(), meeting->second.end(),
                  [](const Seat& s) { return s.guest == 0; }))
    meetings_.erase(meeting);
}

void MeetingBook::leave(Guest guest) {
  auto found = waiting_.find(guest);
  if (found == waiting_.end()) return;
  auto meeting = found->second;
  waiting_.erase(found);
  for (Seat& seat : meeting->second)
    if (seat.guest == guest) seat = {};
  drop_if_empty(meeting);
}

bool MeetingBook::depart(const Departure& departure, Replies& replies) {
  for (const auto& gone : departures_)
    if (gone.rank == departure.rank) return false;
  departures_.push_back(departure);
  auto answer = failure_frame({ErrorCode::peer_lost, departure.rank, departure.reason});
  for (auto meeting = meetings_.begin(); meeting != meetings_.end();) {
    const auto& members = meeting->first.second;
    if (std::find(members.begin(), members.end(), departure.rank) == members.end()) {
      ++meeting;
      continue;
    }
    for (const Seat& seat : meeting->second) {
      if (seat.guest == 0) continue;
      replies.push_back({seat.guest, answer});
      waiting_.erase(seat.guest);
    }
    meeting = meetings_.erase(meeting);
  }
  return true;
}

std::string MeetingBook::absent(const Name& name, const Meeting& meeting) {
  constexpr int kShown = 8;
  std::string text;
  int count = 0;
  for (std::size_t i = 0; i < meeting.size(); ++i) {
    if (meeting[i].guest != 0) continue;
    if (count++ < kShown) text += fmt::format("{}{}", text.empty() ? "" : ", ", name.second[i]);
  }
  if (count > kShown) text += fmt::format(" and {} more", count - kShown);
  return fmt::format("{} {}", count == 1 ? "rank" : "ranks", text);
}

MeetingBook::Replies MeetingBook::expire(Time now) {
  Replies replies;
  for (auto meeting = meetings_.begin(); meeting != meetings_.end();) {
    auto current = meeting++;
    // Whoever lost patience first is missed by nobody who did at the same time.
    const std::string missing = absent(current->first, current->second);
    int first_missing = -1;
    for (std::size_t i = current->second.size(); i-- > 0;)
      if (current->second[i].guest == 0) first_missing = current->first.second[i];
    for (Seat& seat : current->second) {
      if (seat.guest == 0 || seat.until > now) continue;
      replies.push_back(
          {seat.guest, failure_frame({ErrorCode::timeout, first_missing,
                                      fmt::format("{} did not arrive in time", missing)})});
      waiting_.erase(seat.guest);
      seat = {};
    }
    drop_if_empty(current);
  }
  return replies;
}

std::optional<MeetingBook::Time> MeetingBook::next_expiry() const {
  std::optional<Time> next;
  for (const auto& [name, meeting] : meetings_)
    for (const Seat& seat : meeting)
      if (seat.guest != 0 && (!next || seat.until < *next)) next = seat.until;
  return next;
}

}  // namespace kolo::comm::rendezvous

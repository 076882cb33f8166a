// The open meetings of a rendezvous server: which members have arrived, and who is answered when.
// No sockets, no clock, no threads.
//
// A meeting is a key with a list of members. It opens when the first member comes, and is answered
// and forgotten when the last one has: the key can then be used again. A member that is gone fails
// it for all who wait; a guest that lost patience fails it for itself alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "comm/rendezvous/protocol.h"

namespace kolo::comm::rendezvous {

class MeetingBook {
 public:
  /// A connection; each waits for one answer at a time.
  using Guest = std::uint64_t;
  /// An encoded frame for a guest. Shared, because a large answer goes to many.
  struct Reply {
    Guest to = 0;
    std::shared_ptr<const std::string> frame;
  };
  using Replies = std::vector<Reply>;
  using Time = Deadline::Clock::time_point;

  explicit MeetingBook(int size) : size_(size) {}

  /// `guest`, which is `rank`, comes to a meeting.
  Replies come(Guest guest, int rank, Meet request, Time now);
  /// It has hung up; what it brought to open meetings is taken back.
  void leave(Guest guest);
  /// A rank is gone for good. False if that was known.
  bool depart(const Departure& departure, Replies& replies);
  /// Answers those whose patience is over.
  Replies expire(Time now);
  /// When expire() has something to do next.
  [[nodiscard]] std::optional<Time> next_expiry() const;

  [[nodiscard]] std::size_t open_meetings() const noexcept { return meetings_.size(); }
  [[nodiscard]] const std::vector<Departure>& departures() const noexcept { return departures_; }

 private:
  using Name = std::pair<std::string, std::vector<int>>;
  struct Seat {
    Guest guest = 0;  // 0 = empty
    std::string brought;
    Time until;
  };
  using Meeting = std::vector<Seat>;  // one per member

  std::optional<Failure> refusal(int rank, const Meet& request) const;
  static std::string absent(const Name& name, const Meeting& meeting);
  void drop_if_empty(std::map<Name, Meeting>::iterator meeting);

  int size_;
  std::map<Name, Meeting> meetings_;
  std::map<Guest, std::map<Name, Meeting>::iterator> waiting_;
  std::vector<Departure> departures_;
};

}  // namespace kolo::comm::rendezvous

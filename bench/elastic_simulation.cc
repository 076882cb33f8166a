// How long many ranks need to form a new group when one is lost, with the real decisions of
// launcher and workers and a simulated network: whatever the launcher sends or receives takes 50 µs
// of its time, one after the other, and everything else takes none.
#include <cstdio>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "comm/elastic/member.h"
#include "comm/rendezvous/meeting_book.h"
#include "launch/elastic/roster.h"
#include "support/ratios.h"

namespace {

using namespace kolo;
using namespace kolo::launch::elastic;
using comm::elastic::FromLauncher;
using comm::elastic::Member;
using comm::rendezvous::Meet;
using comm::rendezvous::MeetingBook;

constexpr double kSecondsOfMessage = 50e-6;
/// A handshake on each of two connections: hello, challenge, proof and welcome.
constexpr long kMessagesOfJoining = 2 * 4;
/// Of a Context on several hosts, of the meeting of commits, and of the first engine.
constexpr int kMeetings = 4;

class Job {
 public:
  explicit Job(int ranks)
      : members_(static_cast<std::size_t>(ranks)),
        roster_({.start_ranks = ranks, .least_ranks = 1}, HostPool({}, [] { return 0.0; })) {
    (void)roster_.hosts_changed({{"all", ranks}}, Time{0});
    for (int worker = 0; worker < ranks; ++worker) take(roster_.ready(worker, {}, Time{0}));
    for (Member& member : members_) member.join();
  }

  /// Seconds from the death of a rank until the others have met in the next group.
  double lose_one() {
    messages_ = 1;
    take(roster_.ended(0, 137, "was killed", Time{0}));
    const int survivors = static_cast<int>(members_.size()) - 1;
    messages_ += survivors;  // the news
    for (int worker = 1; worker <= survivors; ++worker) {
      ++messages_;
      const auto said = members_[static_cast<std::size_t>(worker)].leave_group(0);
      take(roster_.ready(worker, std::get<comm::elastic::Ready>(said), Time{0}));
    }
    for (int worker = 1; worker <= survivors; ++worker)
      if (members_[static_cast<std::size_t>(worker)].join().generation != 2) return -1;
    messages_ += kMessagesOfJoining * survivors;
    for (int meeting = 0; meeting < kMeetings; ++meeting) meet(survivors);
    return static_cast<double>(messages_) * kSecondsOfMessage;
  }

 private:
  void take(const Actions& actions) {
    for (const Action& action : actions) {
      const auto* formed = std::get_if<FormGroup>(&action);
      if (formed == nullptr) continue;
      comm::elastic::GroupPlan plan;
      plan.generation = formed->generation;
      plan.host_of_rank.assign(formed->members.size(), 0);
      for (const int worker : formed->members) {
        ++messages_;
        members_[static_cast<std::size_t>(worker)].take(FromLauncher{plan});
        ++plan.rank;
      }
    }
  }

  void meet(int ranks) {
    MeetingBook book(ranks);
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    for (const int rank : all) {
      ++messages_;
      Meet request;
      request.key = "all";
      request.members = all;
      request.mine = "an address of this rank";
      request.patience = std::chrono::seconds(30);
      messages_ += static_cast<long>(
          book.come(static_cast<MeetingBook::Guest>(rank + 1), rank, std::move(request), {})
              .size());
    }
  }

  std::vector<Member> members_;
  Roster roster_;
  long messages_ = 0;
};

}  // namespace

int main() {
  const double few = Job(64).lose_one(), many = Job(1024).lose_one();
  std::printf("a rank is lost, at 50 us a message: 64 ranks %.3f s, 1024 ranks %.3f s\n", few,
              many);
  bench::Ratios ratios;
  ratios.print("elastic_regroup_of_1024_s", many, "<=", 1);
  ratios.print("elastic_regroup_growth_64_to_1024", many / few, "<=", 16.5);
  return 0;
}

// Which of the jobs at hand start now, and on which nodes.
//
// The longest first inside what fits, with one reservation (EASY backfilling: Lifka, "The ANL/IBM
// SP scheduling system", 1995): the first job that does not fit gets the nodes that will be free
// for it soonest; until that moment, the *shadow*, others may use those nodes only if they are
// expected to end before it. A job that smaller ones have passed often goes to the front, so that
// it gets the reservation whatever its length. No clock: the caller says what time it is. Cost of a
// look: jobs that wait × nodes, and nothing when no node has room; jobs with the same need as one
// that did not fit are skipped.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "jobs/pilot/nodes.h"

namespace kolo::jobs {

class RunQueue {
 public:
  RunQueue(std::vector<Node> nodes, JobMode mode) : nodes_(std::move(nodes), mode) {}

  [[nodiscard]] Nodes& nodes() noexcept { return nodes_; }

  void add(JobId id, const Need& need, double expected_seconds);
  /// A job that waits; nothing happens if it does not.
  void remove(JobId id);
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Of them, those of several nodes.
  [[nodiscard]] std::size_t waiting_several() const noexcept { return several_; }
  /// Those that would start last, at most so many.
  [[nodiscard]] std::vector<JobId> last(std::size_t most) const;

  struct Start {
    JobId id{};
    std::vector<Place> places;
  };
  /// Starts what may start.
  std::vector<Start> start(double now);
  /// A job that was started: its places are free again.
  void ended(JobId id);
  /// A job that was started needs less from now on, on the same nodes.
  void shrink(JobId id, const Need& need);

 private:
  struct Waiting {
    JobId id{};
    Need need;
    double seconds = 0;
    int passed = 0;  // starts of smaller jobs that came later

    bool operator<(const Waiting& other) const;
  };
  struct Running {
    Need need;
    std::vector<Place> places;
    double expected_end = 0;
  };
  struct Reservation {
    double shadow = 0;
    std::vector<bool> nodes;
  };
  [[nodiscard]] Reservation reserve(const Need& need, double now) const;
  void note_passed(JobId started, const Need& need);

  Nodes nodes_;
  std::size_t several_ = 0;  // of waiting_
  std::set<Waiting> waiting_;
  std::map<JobId, std::set<Waiting>::iterator> by_id_;  // of waiting_
  std::map<JobId, Running> running_;
};

}  // namespace kolo::jobs

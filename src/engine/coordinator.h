// The decisions of the leader of a process set: who has submitted what, and what can be done next.
//
// An operation is ready when every member has submitted it or has joined. What is ready together
// is decided together: requests that do not fit become a failure, small allreduces of one kind are
// fused, everything else follows in the order in which it became ready. No input, output or clock
// of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/messages.h"

namespace kolo::runtime {

class Coordinator {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::size_t fusion_bytes = 0;
    std::chrono::milliseconds stall_warning{0};   ///< zero: none
    std::chrono::milliseconds stall_shutdown{0};  ///< zero: none
  };

  /// `ranks` are the members' ranks in the job, for messages.
  Coordinator(std::vector<int> ranks, Options options);

  void submit(int member, Request request, Clock::time_point now);
  void join(int member);

  /// What has become ready since the last call.
  std::vector<Decision> take_decisions();

  /// Looks for submissions that others have not joined. A text for people is returned when one has
  /// waited longer than stall_warning since it was last reported; those beyond stall_shutdown
  /// become failures, to be taken with take_decisions().
  std::optional<std::string> check_stalls(Clock::time_point now);
  /// When check_stalls should be called next; nothing while nobody waits.
  [[nodiscard]] std::optional<Clock::time_point> next_check() const;

  void set_fusion_bytes(std::size_t bytes) noexcept { options_.fusion_bytes = bytes; }

 private:
  struct Entry {
    std::vector<std::optional<Request>> by_member;
    Clock::time_point since;
    Clock::time_point reported;
  };

  [[nodiscard]] bool is_ready(const Entry& entry) const;
  [[nodiscard]] std::vector<int> missing(const Entry& entry) const;
  /// Moves an entry to what is ready.
  void settle(std::map<std::string, Entry>::iterator entry);

  std::vector<int> ranks_;
  Options options_;
  std::map<std::string, Entry> waiting_;
  std::vector<Decision> ready_;
  std::vector<bool> joined_;
  int joined_count_ = 0;
};

/// What is wrong between the members' requests of one name, if anything; `ranks[i]` is member i's
/// rank in the job.
std::optional<std::string> describe_disagreement(
    const std::vector<std::optional<Request>>& by_member, const std::vector<int>& ranks);

}  // namespace kolo::runtime

// A job whose ranks are forked processes, to be killed and stopped at will.
//
// The parent must have no threads of its own (fork copies only one): tests that use this are in
// executables of their own, and the parent does everything in one loop.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "kolo/context.h"
#include "support/relay.h"
#include "support/scale.h"

namespace kolo::test {

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
std::int64_t now_ns();

/// What a forked rank knows; used in the child.
class ProcessRank {
 public:
  ProcessRank(int rank, std::vector<int> host_of_rank, int control_fd, int news_fd);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(host_of_rank_.size()); }
  /// With a Bootstrap that meets the others in the parent.
  [[nodiscard]] ContextOptions options(std::chrono::milliseconds timeout,
                                       std::string transport = "auto");

  /// Tells the parent that this rank is at a named point, and goes on.
  void reached(const std::string& point);
  /// Reaches `point` and waits there to be killed.
  [[noreturn]] void wait_to_be_killed(const std::string& point);
  /// Reaches `point` and waits there until the parent says go().
  void wait_for_go(const std::string& point);

 private:
  int rank_;
  std::vector<int> host_of_rank_;
  int control_fd_, news_fd_;
  Fd go_fd_;
  friend class ProcessRanks;
};

/// How a rank ended.
struct Outcome {
  bool has_result = false;
  std::string result;  ///< what its body returned
  std::string error;   ///< what its body threw, or the gtest failures it had
  bool signalled = false;
  int status = 0;  ///< exit status, or the signal
};

struct ProcessRanksOptions {
  std::vector<int> host_of_rank = {0, 0};
  /// All ranks are killed and the test fails when they have not ended by then.
  std::chrono::milliseconds limit = std::chrono::seconds(kSanitized ? 100 : 50);
  /// Whether the other ranks are told of deaths by the parent (as a launcher does), or must find
  /// out themselves.
  bool tell_news = true;
};

class ProcessRanks {
 public:
  using Body = std::function<std::string(ProcessRank&)>;

  /// Forks the ranks; each runs `body` and ends.
  ProcessRanks(ProcessRanksOptions options, const Body& body);
  /// Kills and reaps what is left.
  ~ProcessRanks();
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(children_.size()); }
  [[nodiscard]] pid_t pid(int rank) const { return children_.at(rank).pid; }

  /// Serves the ranks until `rank` (or every rank) has reached `point`. Throws when it ends or the
  /// limit passes before.
  void await(int rank, const std::string& point);
  void await_all(const std::string& point);
  /// Serves the ranks until `rank` has ended, and is reaped.
  void await_end(int rank);

  /// Lets a rank that waits in wait_for_go() go on.
  void go(int rank);
  void signal(int rank, int signal);

  /// Serves the ranks until all have ended.
  std::vector<Outcome> finish();

 private:
  struct Child {
    pid_t pid = -1;
    Fd pidfd, control, news, go;
    bool ended = false;
    int end = std::numeric_limits<int>::max();  ///< smaller: it ended earlier
    std::set<std::string> reached;
    Outcome outcome;
  };
  struct Waiting {
    std::string request, contribution;
    Deadline deadline = Deadline::after(std::chrono::seconds(0));
  };
  using MeetingName = std::pair<std::string, std::vector<int>>;

  void start(int rank, const Body& body);
  void serve_once();
  void serve_until(const std::function<bool()>& done, const std::string& what);
  void read_control(int rank);
  void reap(int rank);
  void gather(int rank, const Message& message);
  void fail_gatherings();
  void reply(int rank, const Message& message);
  std::string describe() const;

  ProcessRanksOptions options_;
  Deadline limit_;
  std::vector<Child> children_;
  std::map<MeetingName, std::map<int, Waiting>> meetings_;
};

}  // namespace kolo::test

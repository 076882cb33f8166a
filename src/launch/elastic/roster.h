// The decisions of an elastic job: who is started, which workers form the next group, when the job
// ends. Events in, actions out: no clock, no sockets, no processes.
//
// A group is formed when everybody who was in the last one has left it, is gone or is going, and
// enough workers are ready. So two groups never live at the same time, and each generation has one
// list of members for ever. Workers that come while a group is at work let it finish its step
// (RequestChange).
//
// A worker that lives and does not leave a group that is to end is killed, so that nobody waits for
// ever: one that the others have given up; one of whose process nothing is heard, which is stopped;
// and one that has not come when another has been waiting for as long as operations wait. A worker
// that is alive may take as long as it likes for its step while nobody waits for it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "comm/elastic/messages.h"
#include "launch/elastic/host_pool.h"

namespace kolo::launch::elastic {

using comm::elastic::Generation;

struct RosterOptions {
  int start_ranks = 1;               ///< needed for the first group
  int least_ranks = 1;               ///< needed for each later one
  int most_ranks = 1'000'000;        ///< never started more
  std::optional<int> reset_limit{};  ///< groups after the first one
  Time start_timeout{0};             ///< how long ready workers wait for others that are starting
  Time elastic_timeout{0};           ///< how long they wait for enough others
  Time stuck_timeout{std::chrono::seconds(30)};  ///< for a worker that others have lost, or is mute
  /// How long operations of a group wait, of workers that have not told it.
  Time group_timeout{std::chrono::seconds(300)};
  bool hosts_may_come = false;  ///< the list of hosts can change
};

/// What the launcher is to do.
struct StartWorker {
  int worker = -1;
  HostPool::Slot slot;
};
struct KillWorker {
  int worker = -1;
};
struct RetireWorker {
  int worker = -1;
};
struct FormGroup {
  Generation generation = 0;
  std::vector<int> members;  ///< worker of each rank
};
struct RequestChange {
  Generation generation = 0;
};
struct TellOver {
  int worker = -1;
  Generation generation = 0;
};
struct TellToWait {
  int worker = -1;
};
/// A member of the group at work is gone.
struct AnnounceLoss {
  int rank = -1;
  std::string reason;
  bool has_failed = true;  ///< false: it may be through with its work
};
/// Everything that still runs is to be ended.
struct EndJob {
  int status = 0;
  std::string reason;  ///< "" = it is finished
};
struct Say {
  std::string text;
};
using Action = std::variant<StartWorker, KillWorker, RetireWorker, FormGroup, RequestChange,
                            TellOver, TellToWait, AnnounceLoss, EndJob, Say>;
using Actions = std::vector<Action>;

class Roster {
 public:
  Roster(const RosterOptions& options, HostPool hosts)
      : options_(options), hosts_(std::move(hosts)) {}

  // --- events -----------------------------------------------------------------------------------
  Actions hosts_changed(std::vector<Host> hosts, Time now);
  Actions ready(int worker, const comm::elastic::Ready& message, Time now);
  Actions finished(int worker, const comm::elastic::Finished& message, Time now);
  Actions leaving(int worker, Time now);
  /// A sign of life, which comes every few seconds.
  Actions alive(int worker, Time now);
  /// How long its operations wait for others.
  void timeout(int worker, Time of_operations);
  /// It was not started: somebody else has its slot. Its host is asked again after a while.
  Actions refused(int worker, Time now);
  /// Its process is gone. `code` is 0 or what a shell would say.
  Actions ended(int worker, int code, const std::string& how, Time now);
  /// Time has passed.
  Actions tick(Time now);
  /// Somebody else has decided that the job ends.
  void stop() noexcept { is_over_ = true; }

  // --- questions --------------------------------------------------------------------------------
  /// When tick() has something to do, if nothing else happens.
  [[nodiscard]] std::optional<Time> next_tick() const;
  [[nodiscard]] bool expects(int worker) const { return workers_.contains(worker); }
  [[nodiscard]] const HostPool::Slot& slot_of(int worker) const { return workers_.at(worker).slot; }
  [[nodiscard]] std::size_t living() const noexcept { return workers_.size(); }
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }

 private:
  /// starting: its process has been asked for. waiting: ready for a group. member: in the group.
  /// going: it has finished or was asked to leave, and only its end is awaited.
  enum class Phase { starting, waiting, member, going };
  struct Worker {
    HostPool::Slot slot;
    Phase phase = Phase::starting;
    int rank = -1;              // in the last group that it was in
    bool is_retired = false;    // it was told to leave
    bool has_left = false;      // on notice: its end is no failure
    bool has_finished = false;  // its work is done
    bool is_killed = false;
    Time began{0};                 // when its process was asked for
    Time heard{0};                 // its last sign of life
    std::optional<Time> timeout;   // of its operations, as it has told
    std::optional<Time> given_up;  // by others of its group
  };
  /// A worker that does not leave its group.
  struct Stuck {
    Time since, at;  // at `at` it is killed
    const char* why = "";
  };

  Actions settle(Time now);
  /// A member of the group is gone, leaves or is to leave.
  void group_is_to_end(Time now) {
    if (!ending_since_) ending_since_ = now;
  }
  [[nodiscard]] std::optional<Stuck> stuck(const Worker& worker) const;
  [[nodiscard]] Time longest_timeout() const;
  [[nodiscard]] bool may_join(const Worker& worker, Time now) const;
  void start_workers(Time now, Actions& actions);
  void form_group(Time now, Actions& actions);
  void request_change(Time now, Actions& actions);
  void end_if_hopeless(Time now, Actions& actions);
  void end_job(int status, std::string reason, Actions& actions);
  [[nodiscard]] int count(Phase phase) const;
  [[nodiscard]] int needed() const noexcept {
    return generation_ == 0 ? options_.start_ranks : options_.least_ranks;
  }
  /// Workers that are in a group or may be in the next one.
  [[nodiscard]] int living_ranks() const {
    return count(Phase::starting) + count(Phase::waiting) + count(Phase::member);
  }
  [[nodiscard]] bool is_short() const { return living_ranks() < needed(); }
  [[nodiscard]] std::string describe_shortage(Time now) const;

  RosterOptions options_;
  HostPool hosts_;
  std::map<int, Worker> workers_;  // living ones
  int next_worker_ = 0;
  Generation generation_ = 0;
  std::vector<int> members_;         // of the group, by rank; also those that are gone
  Generation change_requested_ = 0;  // of this group
  bool is_finishing_ = false;        // the work is done; nobody comes, and no group follows
  std::optional<Time> first_waits_since_, short_since_, arrived_since_;
  std::optional<Time> ending_since_;   // the group is to end
  std::optional<Time> awaited_since_;  // a member has left it and waits for the others
  Time settled_{0};                    // when the last decisions were made
  int last_failure_ = 1;
  std::string how_last_failed_;   // "" = no worker has
  bool has_been_joined_ = false;  // a worker was ready once
  bool is_over_ = false;
};

}  // namespace kolo::launch::elastic

// The processes of trials: each run is one task of a custodian, or one task per rank, on this
// machine or spread over hosts.
//
// The ranks of a trial meet at a rendezvous server in this process. When one of them fails, or its
// host is lost, the others are told and ended. Output of other hosts comes here and goes to the
// same files as that of this machine.
//
// The ranks of an elastic trial are workers (launch/elastic): some may be lost, and their number
// may be changed while the trial runs (trial_rings.cc).
//
// Nothing blocks but the loss of a host. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "comm/rendezvous/server.h"
#include "launch/elastic/group_leader.h"
#include "tune/executor/program_run.h"
#include "tune/executor/trial_hosts.h"

namespace kolo::tune {

/// What is started for a run.
struct RunProcess {
  RunId id;
  std::vector<std::string> argv{};
  std::vector<std::string> environment{};  ///< NAME=VALUE on top of this process's own
  std::filesystem::path directory{};       ///< where it starts, on every host
  /// Files that output is appended to. Ranks but the first have their number behind the name.
  std::filesystem::path out{}, err{};
  /// The first rank inherits this descriptor, and is told its number by this variable.
  Fd descriptor{};
  std::string descriptor_variable{};
  std::vector<launch::Placement> placements{};  ///< from TrialHosts::take
  bool is_ring = false;                         ///< false: one process that is no rank of anything
  /// Its ranks are workers, as many as `placements` has, and resize() changes their number. They
  /// inherit no descriptor; workers here and elsewhere get these variables, too.
  bool is_elastic = false;
  std::vector<std::string> here{}, elsewhere{};
  std::chrono::milliseconds grace{5000};  ///< between SIGTERM and SIGKILL
};

/// Nothing of a run is left.
struct RunEnd {
  RunId id;
  std::string error{};          ///< why it failed; "" = it did not
  bool was_terminated = false;  ///< by SIGTERM or SIGINT
  bool was_cut_off = false;     ///< it failed because a host, or its custodian, was lost
  RunOutput said{};             ///< of a failure: the standard error of the rank that failed first
};

class TrialTasks {
 public:
  explicit TrialTasks(TrialHostsSetup hosts) : hosts_(std::move(hosts)) {}

  /// Starts the run when its hosts have answered. Its places, which hosts() has given, go back when
  /// it has ended, or here if this throws.
  void start(RunProcess process);
  /// SIGTERM, to every process of the run.
  void stop(RunId id);
  void kill(RunId id);
  /// Gives an elastic run so many ranks: others join it, or some leave at the end of their step.
  void resize(RunId id, int ranks);
  /// False: an elastic run whose program has not asked for a group yet.
  [[nodiscard]] bool is_in_group(RunId id);

  [[nodiscard]] TrialHosts& hosts() noexcept { return hosts_; }
  /// Whoever polls must look again; see TrialHosts.
  [[nodiscard]] bool needs_poll() const { return hosts_.needs_poll() || !waiting_.empty(); }
  /// Reads what has come and returns the runs that have ended. When a custodian was killed or a
  /// host is lost, all its runs have.
  std::vector<RunEnd> receive();
  /// Elastic runs in which no more ranks are left than resize() wanted, since the last call.
  std::vector<RunId> take_shrunk() { return std::exchange(shrunk_, {}); }

  /// Adds the descriptors to poll, and how long to poll at most; -1 = until something comes.
  void add_polls(std::vector<pollfd>& polls) const;
  [[nodiscard]] int poll_timeout_ms() const;

 private:
  struct Rank {
    exec::TaskId task = 0;  // 0 = not started yet
    TrialHost* host = nullptr;
    RunOutput err{};
    Fd out_file{}, err_file{};  // of another host
    bool is_open = true;        // something of it may be left
    bool has_exited = false;    // of a worker: its leader knows
  };
  struct Run {
    RunProcess process;
    RunEnd end;
    std::deque<Rank> ranks{};                // of an elastic run: workers, by number
    std::unique_ptr<cluster::Gang> slots{};  // of a cluster
    bool is_begun = false;                   // its tasks are started
    bool is_cancelled = false;               // it never will be
    std::unique_ptr<comm::rendezvous::Server> server{};
    std::unique_ptr<launch::elastic::GroupLeader> leader{};  // of an elastic run
    bool is_shrinking = false;
    RunEnd last_loss{};  // of its workers
  };
  struct Place {  // of a task
    std::int64_t trial = 0;
    std::size_t rank = 0;
  };

  Run* find(RunId id);
  [[nodiscard]] static std::filesystem::path file_of_rank(const std::filesystem::path& path,
                                                          std::size_t rank);
  [[nodiscard]] bool hosts_are_ready(const Run& run);
  bool finds_hosts(Run& run);
  [[nodiscard]] static int ranks_in(const std::vector<launch::Placement>& placements);
  /// Nothing of the run has begun.
  void put(Run& run, std::vector<launch::Placement> placements);
  /// Of a cluster: whether the run has its slots. Asks for them when some are free.
  bool has_slots(Run& run);
  void begin(Run& run);
  void begin_waiting();
  [[nodiscard]] exec::Task task_of(Run& run, std::size_t number,
                                   const launch::Placement& placement);
  void end_ranks(Run& run, bool at_once);
  void receive_from(TrialHost& host);
  void handle(const exec::Event& event);
  void write_output(Rank& rank, const RunProcess& process, std::size_t number,
                    const exec::Output& output);
  void rank_exited(Run& run, std::size_t rank, int status);
  void rank_ended(Run& run, std::size_t rank, const exec::TaskEnd& end);
  void lose(TrialHost& host, const std::string& reason);
  void fail(Run& run, std::size_t rank, const std::string& error, bool was_terminated = false);
  void forget_if_over(std::int64_t trial);

  void begin_ring(Run& run);
  void start_worker(Run& run, int worker, const launch::elastic::HostPool::Slot& slot);
  void end_ring(Run& run, int status, const std::string& reason);
  /// Its process is gone.
  void lose_worker(Run& run, std::size_t worker, int code, const std::string& how);
  void hear_rings();
  void note_shrunk(Run& run);
  [[nodiscard]] std::string door_for(const Run& run, const TrialHost& host) const;

  TrialHosts hosts_;
  exec::TaskId next_task_ = 1;
  std::map<std::int64_t, Run> runs_;  // by trial
  std::set<std::int64_t> waiting_;    // trials whose hosts have not answered, or have no free slots
  std::map<exec::TaskId, Place> tasks_;
  std::vector<RunEnd> ended_;  // not told yet
  std::vector<RunId> shrunk_;
};

}  // namespace kolo::tune

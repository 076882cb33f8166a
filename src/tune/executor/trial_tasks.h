// The processes of trials: each run is one task of a custodian (src/exec), or one task per rank.
//
// The custodian holds the lock of the study's directory with everything it starts. So a study
// begins when nothing of an earlier session is left, and two runs of a trial never write into its
// directory at the same time. The ranks of a trial meet at a rendezvous server in this process.
// When one of them fails, the others are told and ended.
//
// Nothing blocks but the constructor and the replacement of a custodian that was killed. One thread
// at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/rendezvous/server.h"
#include "exec/link.h"
#include "tune/executor/program_run.h"

namespace kolo::tune {

/// What is started for a run.
struct RunProcess {
  RunId id;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of this process's own
  std::filesystem::path directory;       ///< where it starts; "" = here
  /// Files that output is appended to. Ranks but the first have their number behind the name.
  std::filesystem::path out, err;
  /// The first rank inherits this descriptor, and is told its number by this variable.
  int descriptor = -1;
  std::string descriptor_variable;
  int ranks = 0;                          ///< 0 = one process that is no rank of anything
  std::chrono::milliseconds grace{5000};  ///< between SIGTERM and SIGKILL
};

/// Nothing of a run is left.
struct RunEnd {
  RunId id;
  std::string error;            ///< why it failed; "" = it did not
  bool was_terminated = false;  ///< by SIGTERM or SIGINT
  RunOutput said;               ///< of a failure: the standard error of the rank that failed first
};

class TrialTasks {
 public:
  /// Waits until no process of an earlier session of the study is left. Throws io.
  explicit TrialTasks(std::filesystem::path study_directory);

  void start(const RunProcess& process);
  /// SIGTERM, to every process of the run.
  void stop(RunId id);
  void kill(RunId id);

  // To poll; -1 = not now.
  [[nodiscard]] int read_fd() const noexcept { return link_->read_fd(); }
  [[nodiscard]] int write_fd() const noexcept { return link_->write_fd(); }
  void flush() { link_->flush(); }
  /// The runs that have ended. If the custodian was killed, all have, and a new one is started.
  std::vector<RunEnd> receive();

 private:
  struct Rank {
    exec::TaskId task = 0;
    RunOutput err;
    bool is_open = true;  // something of it may be left
  };
  struct Run {
    RunEnd end;
    std::vector<Rank> ranks;
    bool is_ring = false;
    std::unique_ptr<comm::rendezvous::Server> server;
  };
  struct Place {  // of a task
    std::int64_t trial = 0;
    std::size_t rank = 0;
  };

  Run* find(RunId id);
  void rank_exited(Run& run, std::size_t rank, int status);
  void rank_ended(Run& run, std::size_t rank, const exec::TaskEnd& end);
  void fail(Run& run, std::size_t rank, const std::string& error, bool was_terminated = false);
  std::vector<RunEnd> replace_custodian();

  std::filesystem::path study_directory_;
  std::unique_ptr<exec::Link> link_;
  exec::TaskId next_task_ = 1;
  std::map<std::int64_t, Run> runs_;  // by trial
  std::map<exec::TaskId, Place> tasks_;
};

}  // namespace kolo::tune

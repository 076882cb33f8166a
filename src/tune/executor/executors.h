// The family of executors: where the trials of a study run.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/ledger.h"
#include "kolo/tune/trainable.h"
#include "launch/hosts.h"
#include "tune/executor/caching_executor.h"
#include "tune/executor/executor.h"

namespace kolo::tune {

/// The program that is run for a trial.
struct TrialCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment{};  ///< NAME=VALUE, besides trial_environment()
};

/// How large a trial is, for executors whose trials may have several ranks.
struct TrialShape {
  int nodes = 1;
  int ranks_per_node = 1;
  int threads_per_rank = 1;
  /// Of `ranks`: trials are elastic, with up to so many ranks; 0 = they are not.
  int most_ranks = 0;
  int virtual_ranks = 0;  ///< of elastic trials; 0 = the program decides
  double gpus = 0;        ///< of `jobs`: of each node
  /// Of `process` and `ranks`: where trials run; none = this machine.
  std::vector<launch::Host> hosts{};
  /// The batch system whose nodes those hosts are; "" = they are reached by ssh.
  std::string batch_system{};
  /// Those hosts are of this cluster, of which each trial reserves its slots; "" = reached by ssh.
  std::string cluster{};
  exec::Amounts each_rank{};                        ///< what a rank reserves of the cluster
  bool follows_cluster = false;                     ///< hosts that come later are used, too
  std::chrono::milliseconds start_timeout{30'000};  ///< of those hosts
  int trials_per_node = 1024;  ///< of `jobs`: so many share a node, if it has the cores
};

/// How many such trials fit on their hosts at once.
inline int trials_at_once(const TrialShape& shape) {
  return launch::groups_at_once(shape.hosts, shape.nodes,
                                shape.ranks_per_node * shape.threads_per_rank);
}

/// Where trials that are jobs are found: the database of KOLO_DB, and the workflow of the job that
/// the study itself is, or else its own.
struct JobsPlace {
  std::filesystem::path database;
  std::string workflow;
  std::int64_t study_job = 0;  ///< the job that the study itself is; 0 = none
  int study_nodes = 1;         ///< of that job
  std::string envscript{};     ///< of its application: trials need it too
  /// How long each call waits for a busy database. What fails is tried again.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  /// For how long: then trials that run or shall start have failed.
  std::chrono::milliseconds retry_limit = std::chrono::hours(1);
};

/// All that executors need; each takes its part.
struct ExecutorSetup {
  ExecutorPlace place{};

  /// Of `thread`: what a trial calls.
  std::optional<Runnable> trainable{};
  ClassPolicy policy{};

  /// Of the others: what a trial runs. The first word of the command is the same for all trials.
  std::function<TrialCommand(const StartOrder&)> command{};
  std::filesystem::path directory{};  ///< where programs start; "" = here
  /// The last line of output is a result, unless the trial reports otherwise. A bare number in it
  /// is this metric.
  bool last_line_reports = false;
  std::string metric{};
  TrialShape shape{};
  std::string kolo = "kolo";  ///< of other hosts: path of the program `kolo`
  std::optional<std::chrono::duration<double>> time_limit{};  ///< of `jobs`: of one trial
  std::string workflow{};           ///< of `jobs`, where the study itself is none; "" = its name
  std::optional<JobsPlace> jobs{};  ///< unset = find_jobs_place(workflow)

  /// Configurations that are known are not run again.
  std::shared_ptr<ResultCache> cache{};
};

struct ExecutorInfo {
  std::string_view name;
  std::string_view aliases;  ///< words of DeepHyper, separated by blanks
  std::string_view summary;
};
/// The table, for `kolo list executors`.
std::vector<ExecutorInfo> executors();

/// The name of the executor that this name or alias means. Throws not_found, listing the names.
std::string_view canonical_executor(std::string_view name);

/// Throws not_found for an unknown name, invalid_argument when the setup lacks what the executor
/// needs, and failed_precondition when there is no database for jobs. Needs no place.
void check_executor(std::string_view name, const ExecutorSetup& setup);

/// Throws as check_executor() does.
std::unique_ptr<TrialExecutor> make_executor(std::string_view name, ExecutorSetup setup);

}  // namespace kolo::tune

// A search as it was ordered: what is searched, by what, and how evaluations run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/hps/run.h"
#include "kolo/search/space.h"
#include "kolo/tune/options.h"
#include "launch/hosts.h"
#include "tune/output/observer.h"

namespace kolo::hps {

/// How evaluations run. `kolo list executors` shows the names.
struct EvaluatorOptions {
  std::string method = "process";
  int num_workers = 0;         ///< evaluations at once; 0 = what fits
  int num_nodes_per_eval = 1;  ///< an evaluation of several nodes has them alone
  int num_ranks_per_node = 1;
  int num_threads_per_rank = 1;
  int num_evals_per_node = 1;  ///< of `jobs`
  double num_gpus_per_task = 0;
  std::vector<launch::Host> hosts{};  ///< of `process` and `ranks`; none = this machine
  std::string cluster{};              ///< that those hosts are of; "" = reached by ssh
  std::optional<std::chrono::duration<double>> timeout{};  ///< of one evaluation
};

struct SearchPlan {
  std::string kind = "hps";  ///< hps or nas
  std::string search{};      ///< "ambs"
  std::string problem{}, run{};
  std::shared_ptr<const search::Space> space{};
  tune::SearchAlg algorithm{};
  std::size_t objectives = 1;  ///< all maximised

  std::int64_t max_evals = -1;  ///< -1 = without end
  /// A search gives up when so many evaluations of this session have failed and none of the whole
  /// search has succeeded; 0 = never.
  std::int64_t max_failures = 20;
  std::optional<std::chrono::duration<double>> timeout{};
  std::uint64_t seed = 0;
  /// "uuid": every evaluation is made; "to_dict": the same configuration is not evaluated again.
  std::string cache_key = "uuid";
  std::filesystem::path log_dir = ".";
  bool resume = false;
  std::filesystem::path warm_start{};  ///< results.csv of an earlier search
  /// Columns of results.csv that the run function will fill; it may say more.
  std::vector<std::string> metadata{};

  EvaluatorOptions evaluator{};
  /// For the evaluators of this process: serial and thread.
  RunFunction run_function{};
  /// For the others: words of a program that evaluates one configuration: kolo's own
  /// (`kolo evaluate …`), or the user's, with {parameters} in it.
  std::vector<std::string> command{};
  bool is_users_program = false;

  /// How long an evaluation that shall end may take before it is killed or left behind.
  std::chrono::duration<double> grace = std::chrono::seconds(5);

  /// Several searches that share one folder (agents of PPO): this is number `agent`.
  int agent = 0, agents = 1;

  std::vector<std::shared_ptr<tune::Observer>> observers{};
  const std::atomic<bool>* interrupted = nullptr;
  std::string kolo{};  ///< path of the program `kolo`
};

}  // namespace kolo::hps

// Functions that train an architecture and say how good it is. The names are DeepHyper's.
//
//   nas::LoadedNaProblem loaded = nas::load_na_problem("benchmark.nas.linear_reg");
//   hps::RunFunction run = nas::bind_run("alpha", loaded.problem);   // for a search
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/hps/run.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

/// Trains the architecture of job.parameters() and answers the problem's objective.
///
/// Metadata: n_parameters, training_time and predict_time (seconds), epochs, and how the training
/// ended. Failures: "F_build: …" when the architecture cannot be made, "F_nan" when a loss, a
/// metric or the objective is not a finite number. Other errors are thrown.
///
/// After each epoch the objective so far is recorded in the job. Where job.log_dir() is not empty,
/// writes save/model/ID.pt (the weights of the best epoch), save/history/ID.json and
/// save/config/ID.json below it.
///
/// Computes with one thread unless OMP_NUM_THREADS is set or the program has chosen a number
/// (kolo/torch/threads.h). The same configuration, ranks and threads give the same bits (dropout
/// apart, where several evaluations run in threads of one process).
using NaRunFunction = hps::RunResult (*)(const NaProblem& problem, hps::RunningJob& job);

/// One process.
hps::RunResult alpha(const NaProblem& problem, hps::RunningJob& job);
/// All ranks of the default Context, which is joined if that was not done: every rank calls it with
/// the same parameters, and gets the same answer. Batch and rate follow the linear scaling rule,
/// with a warm-up of 5 epochs, unless hyperparameters say otherwise (lsr_batch_size,
/// lsr_learning_rate, warmup_lr, warmup_epochs). Every rank records, rank 0 writes.
hps::RunResult distributed(const NaProblem& problem, hps::RunningJob& job);
/// The same, but nothing is scaled unless hyperparameters say so.
hps::RunResult tf_distributed(const NaProblem& problem, hps::RunningJob& job);
/// Trains nothing: the sum of arch_seq, for tests of searches.
hps::RunResult quick(const NaProblem& problem, hps::RunningJob& job);

struct NaRunInfo {
  std::string_view name;
  std::string_view summary;
  NaRunFunction function;
};
std::span<const NaRunInfo> na_run_functions();
/// By name; "horovod" and names as deephyper.nas.run.horovod.run are understood. Throws not_found,
/// listing the known ones.
const NaRunInfo& na_run_function(std::string_view name);
/// For a search. Copies the problem (its data are shared). The name may also be that of a function
/// of a user's library, as "libmy.so:half" (KOLO_HPS_RUN), which knows its problem itself. Throws
/// not_found if the problem's objective is no metric of its trainings.
hps::RunFunction bind_run(std::string_view name, NaProblem problem);

/// The network that an evaluation left in a folder of a search, with its best weights. Throws
/// not_found, corruption, and invalid_argument when it is of another problem.
std::shared_ptr<Model> load_model(const NaProblem& problem, const std::filesystem::path& log_dir,
                                  std::int64_t id);

// --- post-training ---

struct PostTrained {
  Value configuration;
  std::vector<double> objectives;  ///< of each repetition; not-a-number where it failed
  std::vector<std::string> failures;
  double best = 0, mean = 0, deviation = 0;  ///< of those that did not fail
  std::map<std::string, Value> metadata;     ///< of the best repetition
};

/// Trains each configuration anew as problem.post_training() says, `repeat` times with other seeds,
/// by a run function. With `log_dir` writes post_training/save/… (evaluation c, repetition r has
/// the number c·repeat + r) and post_training/results.json there.
std::vector<PostTrained> post_train(const NaProblem& problem, const std::vector<Value>& best,
                                    std::string_view run = "alpha",
                                    const std::filesystem::path& log_dir = {});

}  // namespace kolo::nas

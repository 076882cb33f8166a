// Checkpoints: everything that a run needs to continue with the same bits.
//
//   kolo::Checkpointer checkpoints({.directory = "ckpt", .keep_last = 3});
//   kolo::TrainingState state{.module = net.ptr().get(), .distributed = &optimizer,
//                             .scheduler = &rate, .sampler = &sampler};
//   auto resumed = checkpoints.resume(state);            // collective; nullopt: nothing to resume
//   …
//   checkpoints.save(step, state, {.metric = loss});     // collective; rank 0 writes
//
// A file is written under another name and then renamed, so that a crash leaves the old files as
// they were. Each part has a checksum; a damaged file is reported by name, and the one before it is
// used.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kolo/torch/collectives.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"

namespace kolo {

/// Named byte strings. What kolo writes: model, optimizer, scheduler, sampler, random.<rank>,
/// residuals.<rank>; names that begin with "user." are free.
using CheckpointParts = std::map<std::string, std::string>;

struct CheckpointInfo {
  std::filesystem::path path;
  std::uint64_t step = 0;
  std::optional<double> metric;
};

struct CheckpointOptions {
  std::filesystem::path directory;
  int keep_last = 3;            ///< how many of the newest files are kept, besides the best
  bool keep_best = true;        ///< by metric
  bool lower_is_better = true;  ///< of the metric
};

/// The files of one run, in one directory, on one host. No ranks, no libtorch: see Checkpointer.
class CheckpointFiles {
 public:
  /// Makes the directory if it is not there. Throws io.
  explicit CheckpointFiles(CheckpointOptions options);

  /// Writes `directory`/step-000000000042.kolo, removes what need not be kept of this step and
  /// those before it. Throws io.
  CheckpointInfo write(std::uint64_t step, const CheckpointParts& parts,
                       std::optional<double> metric = {});

  /// Oldest first. Files that are no checkpoints are not listed; a damaged one is only found out
  /// when it is read. Throws io.
  [[nodiscard]] std::vector<CheckpointInfo> list() const;

  /// Throws not_found, corruption (which names the file and what is wrong with it).
  [[nodiscard]] static CheckpointParts read(const std::filesystem::path& path);

  struct Loaded {
    CheckpointInfo info;
    CheckpointParts parts;
    std::vector<std::string> damaged;  ///< messages about newer files that could not be used
  };
  /// The newest that is whole; damaged ones are logged as warnings and skipped. nullopt when there
  /// are no files; corruption when there are, and none is whole.
  [[nodiscard]] std::optional<Loaded> read_latest() const;
  /// The best by metric that is whole.
  [[nodiscard]] std::optional<Loaded> read_best() const;

 private:
  [[nodiscard]] std::optional<Loaded> read_first_whole(std::vector<CheckpointInfo> wanted) const;
  [[nodiscard]] bool is_better(double a, double b) const noexcept;
  void remove_old(const std::filesystem::path& written) const;

  CheckpointOptions options_;
};

/// The state of a run; null parts are left out.
struct TrainingState {
  torch::nn::Module* module = nullptr;
  torch::optim::Optimizer* optimizer = nullptr;
  /// The wrapper of the optimizer, instead of `optimizer`. Needed for sharded state, and for what
  /// PowerSGD and top-k have left out. Only Checkpointer uses it, which must belong to the same
  /// process set.
  DistributedOptimizer* distributed = nullptr;
  RateScheduler* scheduler = nullptr;
  DistributedSampler* sampler = nullptr;
  bool random = true;               ///< libtorch's generator, of each rank
  CheckpointParts* user = nullptr;  ///< further parts, from rank 0; names without "user."
};

/// The state as named parts, and back. Bits are kept. Loading throws invalid_argument when the
/// parts do not fit, and leaves what it has not reached yet unchanged. `rank` chooses the random
/// state.
[[nodiscard]] CheckpointParts capture(const TrainingState& state, int rank = 0);
void restore(const CheckpointParts& parts, const TrainingState& state, int rank = 0);

struct SaveOptions {
  std::optional<double> metric;
};

/// Checkpoints of a job: rank 0 writes and reads, every rank takes part. Without init() it works
/// for one process alone.
class Checkpointer {
 public:
  /// The directory needs to exist on rank 0's host only. Throws io on every rank.
  explicit Checkpointer(CheckpointOptions options, CollectiveOptions how = {});

  /// Collective. Returns when the file is safe. A failure to write is an error on every rank.
  void save(std::uint64_t step, const TrainingState& state, SaveOptions options = {});

  struct Resumed {
    std::uint64_t step = 0;
    std::vector<std::string> damaged;
  };
  /// Collective: the newest whole checkpoint into everybody's state; nullopt when there is none.
  /// With another number of ranks than it was saved with, generators of ranks it does not know are
  /// seeded from rank and step, state that is shared out is shared out anew, and all get an equal
  /// share of what compression has left out.
  std::optional<Resumed> resume(const TrainingState& state);

 private:
  CollectiveOptions how_;
  std::optional<CheckpointFiles> files_;  // on rank 0
  int rank_ = 0, ranks_ = 1;
};

}  // namespace kolo

// Which samples a rank visits in an epoch.
//
//   kolo::DistributedSampler sampler(data.size());
//   for (int epoch = 0; epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     while (auto samples = sampler.next(batch)) train_on(data.batch(*samples));
//   }
//
// They are libtorch samplers: torch::data::make_data_loader takes them too.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kolo/torch/epochs.h"

namespace kolo {

struct SamplerOptions {
  bool shuffle = true;  ///< another order in each epoch, from seed and epoch alone
  std::uint64_t seed = 0;
  Tail tail = Tail::pad;
  /// A last batch that is not full is left out.
  bool drop_partial_batch = false;
  /// Negative rank: those of the default Context, or one rank alone before init().
  int rank = -1;
  int ranks = 0;
};

/// Gives every rank its part of `samples`; together they visit each once an epoch (see Tail). With
/// the same global batch the samples of a step are the same for any number of ranks.
/// Not thread-safe.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Throws invalid_argument unless 0 <= rank < ranks.
  explicit DistributedSampler(std::size_t samples, SamplerOptions options = {});

  /// Begins epoch `epoch` (0, 1, …) at its first sample.
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

  /// As if so many of this rank's samples had been taken already.
  void skip(std::size_t samples);

  /// The next samples of this rank, `batch_size` of them or what is left; nullopt at the end.
  torch::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  /// Begins the epoch again, with another number of samples if given. The loader calls this before
  /// each epoch; it does not change the epoch's number.
  void reset(torch::optional<std::size_t> samples = torch::nullopt) override;

  /// Samples of this rank in this epoch (from where it was last partitioned), and how many of them
  /// next() has given out.
  [[nodiscard]] std::size_t local_size() const noexcept { return mine_.size(); }
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

  [[nodiscard]] int rank() const noexcept { return options_.rank; }
  [[nodiscard]] int ranks() const noexcept { return options_.ranks; }

  /// Where all ranks are, as JSON text that any of them (and any number of ranks) can load: ranks
  /// must have taken equally much. Loading throws invalid_argument when it is of other data.
  [[nodiscard]] std::string state() const;
  void load_state(const std::string& json);

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  /// Deals out what is left after the first `visited` samples of the epoch.
  void partition(std::size_t visited);
  /// Samples of the epoch that all ranks together have taken.
  [[nodiscard]] std::size_t visited() const noexcept;

  SamplerOptions options_;

 private:
  std::size_t samples_;
  std::uint64_t epoch_ = 0;
  std::size_t partitioned_at_ = 0;  // samples visited when mine_ was dealt out
  std::vector<std::size_t> mine_;
  std::size_t position_ = 0;
};

/// For jobs whose ranks come and go: in the middle of an epoch the rest of it can be dealt out to
/// other ranks. What counts as visited is what was recorded, so that work lost with a rank is done
/// again.
class ElasticSampler : public DistributedSampler {
 public:
  explicit ElasticSampler(std::size_t samples, SamplerOptions options = {});

  /// Every rank has finished a batch of `batch_size` samples of its own.
  void record_batch(std::size_t batch_size);
  /// Samples of the epoch that all ranks have finished.
  [[nodiscard]] std::size_t recorded() const noexcept { return recorded_; }

  /// Deals out what has not been recorded to `ranks` ranks of which this is `rank`.
  void repartition(int rank, int ranks);

  void set_epoch(std::uint64_t epoch);
  /// As of DistributedSampler, but of what was recorded.
  [[nodiscard]] std::string state() const;
  void load_state(const std::string& json);

 private:
  std::size_t recorded_ = 0;
};

}  // namespace kolo

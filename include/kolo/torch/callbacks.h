// Callbacks of the Trainer: broadcast, averages of metrics, learning rates, checkpoints, loggers.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/torch/trainer.h"

namespace kolo {

namespace events {
class EventFile;
}
namespace train {
class Patience;
}

/// Before the first step: parameters, buffers and optimizer state of `root_rank` to all. Comes
/// before a CheckpointCallback.
class BroadcastCallback : public Callback {
 public:
  explicit BroadcastCallback(int root_rank = 0) : root_(root_rank) {}
  void on_train_begin(Trainer& trainer) override;

 private:
  int root_;
};

/// After each epoch: metrics become their averages over the ranks. Comes before those who use them.
class MetricAverageCallback : public Callback {
 public:
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;
};

/// Learning rates: warm-up and schedules (schedule.h). Puts `rate` into the metrics. Comes before a
/// CheckpointCallback.
class RateCallback : public Callback {
 public:
  explicit RateCallback(schedule::Rate rate, bool momentum_correction = true,
                        bool count_from_one = false);
  void on_train_begin(Trainer& trainer) override;
  void on_reset(Trainer& trainer) override;
  void on_step(Trainer& trainer) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& state) override;

 private:
  schedule::Rate rate_;
  bool momentum_correction_, count_from_one_;
  std::optional<RateScheduler> scheduler_;
  std::string loaded_;  // before there is a scheduler
};

/// A checkpoint every few epochs, and when the run begins: resumes from the newest whole one.
class CheckpointCallback : public Callback {
 public:
  struct Options {
    CheckpointOptions files;
    std::string monitor;  ///< metric that says which is best; "": none
    std::uint64_t every_epochs = 1;
    bool resume = true;
  };
  explicit CheckpointCallback(Options options);
  void on_train_begin(Trainer& trainer) override;
  void on_reset(Trainer& trainer) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;

 private:
  Options options_;
  std::optional<Checkpointer> checkpoints_;
};

/// Ends the run when `monitor` has not become better by `min_delta` for `patience` epochs. Rank 0
/// decides for all.
class EarlyStop : public Callback {
 public:
  struct Options {
    std::string monitor = "val_loss";
    int patience = 5;
    double min_delta = 0;
    bool lower_is_better = true;
  };
  explicit EarlyStop(Options options);
  ~EarlyStop() override;
  void on_train_begin(Trainer& trainer) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& state) override;

 private:
  void renew();

  Options options_;
  std::unique_ptr<train::Patience> patience_;
};

/// One line an epoch, the first of which is 1; rank 0 writes. A metric that first appears later
/// gets a column of its own: the file is written anew. A run that is resumed keeps the lines of the
/// epochs before.
class CsvLogger : public Callback {
 public:
  explicit CsvLogger(std::filesystem::path path) : path_(std::move(path)) {}
  void on_train_begin(Trainer& trainer) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;

 private:
  void read_epochs_before(std::uint64_t epoch);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::vector<std::pair<std::uint64_t, Metrics>> rows_;
};

/// Scalars for TensorBoard, one an epoch and metric; their step is the epoch, the first of which is
/// 1. Rank 0 writes.
class TensorBoardLogger : public Callback {
 public:
  explicit TensorBoardLogger(std::filesystem::path directory);
  ~TensorBoardLogger() override;
  void on_train_begin(Trainer& trainer) override;
  void on_reset(Trainer& trainer) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;

 private:
  std::filesystem::path directory_;
  std::unique_ptr<events::EventFile> file_;
};

/// One line an epoch with a bar that grows where the output is a terminal; rank 0 prints.
class ProgressBar : public Callback {
 public:
  explicit ProgressBar(std::FILE* out = stdout);
  void on_epoch_begin(Trainer& trainer) override;
  void on_step_end(Trainer& trainer, double loss) override;
  void on_epoch_end(Trainer& trainer, Metrics& metrics) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* out_;
  bool is_terminal_;
  Clock::time_point begun_, drawn_;
};

}  // namespace kolo

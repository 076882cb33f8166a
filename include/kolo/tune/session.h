// The session of a trial: how it reports, saves checkpoints, and learns that it has to stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "kolo/search/domain.h"
#include "kolo/search/value.h"

namespace kolo::tune {

using search::Value;
using Config = search::Value;

/// Thrown inside a trial to unwind it when it has to stop. It is not a std::exception, so that
/// handlers of errors let it pass. Do not catch it.
struct Stopped {};

/// The study passes it to the trainable. It is valid during the call, for one thread at a time.
class Session {
 public:
  virtual ~Session() = default;

  /// Reports a result: a dictionary of numbers, booleans, texts and dictionaries of these. Returns
  /// when the study has stored it and decided about it. Throws Stopped when the trial has to stop;
  /// clean up in destructors, or use try_report.
  void report(const Value& metrics) {
    if (!try_report(metrics)) throw Stopped{};
  }
  /// As report, but returns false when the trial has to stop. The next report then throws Stopped.
  virtual bool try_report(const Value& metrics) = 0;
  /// Reports the result of a trial that ends now. There is nothing left to decide, so this does not
  /// wait. What a trainable function returns is reported in this way.
  virtual void report_last(const Value& metrics) { report(metrics); }

  /// True when the trial has to stop, because the study is over or somebody stopped it. Does not
  /// block.
  [[nodiscard]] virtual bool should_stop() const = 0;
  /// True after a report when the scheduler wants a checkpoint for other trials to start from.
  [[nodiscard]] virtual bool should_save() const = 0;

  /// Calls `write` with an empty directory to fill. The checkpoint counts from the next report on,
  /// together with it: a trial that is interrupted in between starts from the one before. Half of
  /// one is never seen. In a trial of several ranks every rank calls this, and what ranks other
  /// than 0 write is thrown away.
  virtual void save_checkpoint(
      const std::function<void(const std::filesystem::path& directory)>& write) = 0;
  /// The checkpoint to start from: the last one of this trial, or of the trial it was cloned from.
  [[nodiscard]] virtual std::optional<std::filesystem::path> checkpoint() const = 0;

  /// Reports so far, those before a restart included: 0 at the beginning.
  [[nodiscard]] virtual std::int64_t iteration() const = 0;
  [[nodiscard]] virtual const std::string& trial_id() const = 0;
  [[nodiscard]] virtual const std::string& trial_name() const = 0;
  [[nodiscard]] virtual const std::filesystem::path& trial_dir() const = 0;
};

/// The session of the trial that the calling thread runs, or of this process if `kolo tune` started
/// it. Throws failed_precondition elsewhere.
Session& session();

/// session().report(metrics): tune::report({{"loss", 0.3}}).
void report(const Value& metrics);

}  // namespace kolo::tune

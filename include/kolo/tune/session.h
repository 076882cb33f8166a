// A trial's own view of the study: where it reports, saves, and learns that it shall end.
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

/// Thrown inside a trial to unwind it when it shall end. Not a std::exception, so that handlers of
/// errors let it pass; do not catch it.
struct Stopped {};

/// Given to the trainable, valid during the call. One thread at a time.
class Session {
 public:
  virtual ~Session() = default;

  /// One more result: numbers, truths, texts and dictionaries of these. Returns when it is stored
  /// and decided upon. Throws Stopped when the trial shall end; what has to be done before
  /// belongs in destructors, or use try_report.
  void report(const Value& metrics) {
    if (!try_report(metrics)) throw Stopped{};
  }
  /// As report, but returns false when the trial shall end soon. Reporting again then throws
  /// Stopped.
  virtual bool try_report(const Value& metrics) = 0;

  /// True when the trial shall end: the study is over, or somebody stopped it. Does not block.
  [[nodiscard]] virtual bool should_stop() const = 0;
  /// True after a report when the scheduler would like a checkpoint that others may start from.
  [[nodiscard]] virtual bool should_save() const = 0;

  /// Calls `write` with an empty directory to fill. The checkpoint counts from the next report on,
  /// together with it: a trial that is interrupted in between starts from the one before. Half of
  /// one is never seen. In a trial of several ranks every rank calls this, and what ranks other
  /// than 0 write is thrown away.
  virtual void save_checkpoint(
      const std::function<void(const std::filesystem::path& directory)>& write) = 0;
  /// Where to start from: the trial's last checkpoint, or that of another trial it was cloned
  /// from.
  [[nodiscard]] virtual std::optional<std::filesystem::path> checkpoint() const = 0;

  /// Reports so far, those before a restart included: 0 at the beginning.
  [[nodiscard]] virtual std::int64_t iteration() const = 0;
  [[nodiscard]] virtual const std::string& trial_id() const = 0;
  [[nodiscard]] virtual const std::string& trial_name() const = 0;
  [[nodiscard]] virtual const std::filesystem::path& trial_dir() const = 0;
};

/// The session of the trial that the calling thread runs. Throws failed_precondition elsewhere.
Session& session();

/// session().report(metrics): tune::report({{"loss", 0.3}}).
void report(const Value& metrics);

}  // namespace kolo::tune

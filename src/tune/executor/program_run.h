// What the executors of programs know about a run: what it has said, and what its end means.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tune/executor/executors.h"
#include "tune/protocol/report_file.h"
#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {

/// Files that the output of a run is appended to, and where in them the run began.
struct RunOutput {
  std::filesystem::path path{};
  std::uintmax_t from = 0;

  RunOutput() = default;
  /// From the end of the file as it is now.
  explicit RunOutput(std::filesystem::path file);
};

struct ProgramRun {
  RunId id;
  RunOutput out{};
  bool reported = false;
  bool saves_on_request = false;
  std::optional<TrialLine> result{};  ///< its last report
  std::string failure{};              ///< as the program itself, or a line of it, tells it
  std::int64_t known = 0;             ///< reports at the beginning of its file that the study has
  std::uint64_t last_put = 0;         ///< of what was in its file: the number in the inbox

  /// The message for the study; none where the line concerns the executor alone.
  std::optional<Message> take(TrialLine line);
  /// Puts what is new in the run's file into the inbox, as fast as the study takes it from there.
  /// Too much of it makes the run a failure. Throws what ReportFile::read() throws.
  ReportFile::Rest hear(ReportFile& file, bool has_ended, Inbox& inbox);
  /// A line that cannot be understood makes the run a failure.
  void refuse(const std::string& why);
  /// How the run ended: `error` says how it failed ("" = it did not), and `err` is what it wrote to
  /// its standard error.
  [[nodiscard]] Message end(std::string error, const RunOutput& err,
                            const ExecutorSetup& setup) const;
};

}  // namespace kolo::tune

// The files of one trial, in Ray Tune's layout: params.json, result.json, progress.csv,
// events.out.tfevents.*, error.txt.
//
// They repeat what the database holds. A resumed study rewrites the files that may lack something.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "kolo/search/value.h"

namespace kolo::tune {

/// Writes the results of one trial in one format. It may hold text back until flush().
class ResultLogger {
 public:
  virtual ~ResultLogger() = default;
  /// A complete result, as result.json has it.
  virtual void result(const search::Value& result) = 0;
  virtual void flush() = 0;
  /// The trial waits: closes the files, which later results open again.
  virtual void release() = 0;
  virtual void end(bool /*success*/) {}
};

/// What loggers are told about their trial.
struct LoggedTrial {
  std::filesystem::path directory;
  search::Value config;
  std::vector<std::string> metrics;  ///< of the objectives
};

struct LoggerInfo {
  std::string_view name;
  std::string_view summary;
};
/// For `kolo list loggers`.
std::vector<LoggerInfo> loggers();

/// Throws not_found for unknown names.
void require_loggers(const std::vector<std::string>& names);

/// Opens a file of the trial to append to. Throws failed_precondition if something else has its
/// name or that of its directory: the trial may put links and pipes there.
Fd open_trial_file(const std::filesystem::path& path, mode_t mode);
/// Readers see the old content or the new one, whatever has the name now. It is not flushed to
/// disk: the database is what survives a power failure.
void replace_trial_file(const std::filesystem::path& path, std::string_view content);
/// Throws failed_precondition unless the directory is there and no link to another one.
void require_trial_directory(const std::filesystem::path& directory);

/// Writes params.json in the directory of the trial. A reader sees either the old or the new file.
void write_params(const std::filesystem::path& directory, const search::Value& config);

class TrialLog {
 public:
  /// Makes the directory and params.json. With `anew`, results that are there are removed.
  TrialLog(LoggedTrial trial, const std::vector<std::string>& loggers, bool anew);

  void result(const search::Value& result);
  void failure(std::int64_t count, const std::string& error, double time);
  void flush();
  void release();
  void end(bool success);

 private:
  std::filesystem::path directory_;
  std::vector<std::unique_ptr<ResultLogger>> loggers_;
};

}  // namespace kolo::tune

// The files of one trial, in Ray Tune's layout: params.json, result.json, progress.csv,
// events.out.tfevents.*, error.txt.
//
// They repeat what the database holds. A study that was interrupted writes those anew that may
// miss something.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/value.h"

namespace kolo::tune {

/// One form of the results. What is written may wait until flush().
class ResultLogger {
 public:
  virtual ~ResultLogger() = default;
  /// A complete result, as result.json has it.
  virtual void result(const search::Value& result) = 0;
  virtual void flush() = 0;
  /// The trial waits: gives descriptors back, which later results open again.
  virtual void release() = 0;
  virtual void end(bool /*success*/) {}
};

/// What loggers are told about their trial.
struct LoggedTrial {
  std::filesystem::path directory;
  search::Value config;
  std::vector<std::string> metrics;  ///< objectives
};

struct LoggerInfo {
  std::string_view name;
  std::string_view summary;
};
/// For `kolo list loggers`.
std::vector<LoggerInfo> loggers();

/// Throws not_found for unknown names.
void require_loggers(const std::vector<std::string>& names);

/// params.json in the trial's directory. A trial may be reading it at any time: it sees this one or
/// the one before.
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

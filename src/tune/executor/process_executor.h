// Trials as programs: tasks of a custodian that talk to the study over sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/executor/executor.h"

namespace kolo::tune {

/// What is run for a trial.
struct TrialCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment{};  ///< NAME=VALUE, besides the protocol's own
  std::filesystem::path directory{};       ///< "" = where the controller is
  int ranks = 0;                           ///< 0 = one process that is no rank of anything
};

struct ProcessSetup {
  std::function<TrialCommand(const StartOrder&)> command;
  /// The name of a bare number on the last line of output.
  std::string metric;
  /// Programs that have not said that they listen get SIGTERM when they shall stop.
  bool last_line_reports = false;
};

std::unique_ptr<TrialExecutor> make_process_executor(const ExecutorPlace& place,
                                                     ProcessSetup setup);

/// KOLO_PARAM_MODEL_UNITS=64 for model/units, and so on.
std::vector<std::string> parameter_variables(const Value& config);

}  // namespace kolo::tune

// Trials as programs: started by a keeper, talking over sockets.
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
};

struct ProcessSetup {
  std::filesystem::path study_directory;
  std::function<TrialCommand(const StartOrder&)> command;
  /// The name of a bare number on the last line of output.
  std::string metric;
  /// Programs that have not said that they listen get SIGTERM when they shall stop.
  bool last_line_reports = false;
};

std::unique_ptr<TrialExecutor> make_process_executor(std::shared_ptr<Inbox> inbox,
                                                     ProcessSetup setup);

/// KOLO_PARAM_MODEL_UNITS=64 for model/units, and so on.
std::vector<std::string> parameter_variables(const Value& config);

}  // namespace kolo::tune

// What every program that is a trial finds in its environment, whichever executor runs it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tune/executor/executor.h"

namespace kolo::tune {

/// KOLO_PARAM_MODEL_UNITS=64 for the parameter model/units, and so on.
std::vector<std::string> parameter_variables(const Value& config);

/// The parameters, and KOLO_TRIAL_PROTOCOL, _ID, _NAME, _DIR, _ITERATION, _CHECKPOINT and _CONFIG.
/// A trial that cannot be reached by sockets reports through the file `reports`.
std::vector<std::string> trial_environment(const StartOrder& order,
                                           const std::filesystem::path& reports = {});

/// CUDA_VISIBLE_DEVICES=…, where the trial has devices of this machine.
std::optional<std::string> device_variable(const StartOrder& order);

}  // namespace kolo::tune

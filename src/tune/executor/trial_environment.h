// What every program that is a trial finds in its environment, whichever executor runs it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tune/executor/executor.h"

namespace kolo::tune {

/// KOLO_PARAM_MODEL_UNITS=64 for the parameter model/units, and so on.
std::vector<std::string> parameter_variables(const Value& config);

/// The file with the configuration, which KOLO_TRIAL_CONFIG names.
std::filesystem::path config_file(const StartOrder& order);

/// The file in which a trial that cannot reach its study leaves its result.
std::filesystem::path result_file(const StartOrder& order);

/// The parameters, KOLO_TRIAL_ID, _NAME, _DIR, _ITERATION, _CHECKPOINT and _CONFIG, and
/// CUDA_VISIBLE_DEVICES where the trial has devices of this machine.
std::vector<std::string> trial_environment(const StartOrder& order);

}  // namespace kolo::tune

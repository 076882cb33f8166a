// Architecture problems as files of YAML or JSON:
//
//   space: dense_skip_co
//   settings: {num_layers: 3}
//   data: {csv: measurements.csv, target: yield, validation: 0.2}     # or: digits, fashion
//   hyperparameters: {batch_size: 64, learning_rate: {loguniform: [0.0001, 0.1]}, num_epochs: 10}
//   loss: mse
//   metrics: [r2]
//   objective: val_r2
//
// docs/nas.md has all keys.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

/// `file` is named in errors, and names of data files are relative to its folder. Throws
/// invalid_argument or not_found naming file and key.
NaProblem read_problem_file(const Json& json, const std::filesystem::path& file);

}  // namespace kolo::nas

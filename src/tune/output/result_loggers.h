// The loggers: JSON lines, CSV and TensorBoard files beside the database.
#pragma once

#include <memory>

#include "tune/output/trial_log.h"

namespace kolo::tune {

std::unique_ptr<ResultLogger> make_json_logger(const LoggedTrial& trial);
std::unique_ptr<ResultLogger> make_csv_logger(const LoggedTrial& trial);
std::unique_ptr<ResultLogger> make_tensorboard_logger(const LoggedTrial& trial);

/// A field of CSV (RFC 4180), quoted where it must be.
std::string csv_field(const search::Value& value);

}  // namespace kolo::tune

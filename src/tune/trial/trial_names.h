// Names of trials and their directories, in Ray Tune's form.
#pragma once

#include <cstdint>
#include <string>

#include "kolo/search/space.h"
#include "kolo/tune/options.h"

namespace kolo::tune {

/// "8f3c2_00007": five digits that identify the study, and the number of the trial.
std::string trial_id(const std::string& study, double created, std::int64_t number);

/// "7_batch=32,lr=0.01": the number and the parameters that vary, keys sorted, floats short.
std::string experiment_tag(std::int64_t number, const Value& config, const search::Space& space);

/// "trainable_8f3c2_00007_7_lr=0.01_2024-01-31_12-00-00", cut at 130 characters before
/// the date.
std::string trial_directory(const Options& options, const std::string& trainable,
                            const std::string& id, std::int64_t number, const Value& config,
                            const search::Space& space, double created);

/// "2024-01-31_12-00-00", local time.
std::string date_text(double time);

}  // namespace kolo::tune

// From a run function to what a study understands.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "kolo/hps/run.h"
#include "kolo/tune/trainable.h"

namespace kolo::hps {

/// What is reported of a result: the objectives (or the failure in place of the first) and
/// "metadata". Throws invalid_argument when the number of objectives is another one.
Value report_of(const RunResult& result, std::size_t objectives);

/// The number of an evaluation, from the id of its trial.
std::int64_t evaluation_number(std::string_view trial_id);

/// For threads, and for programs that are trials. `log_dir` is the search's folder.
tune::Runnable runnable_of(RunFunction run, std::filesystem::path log_dir, std::size_t objectives);

}  // namespace kolo::hps

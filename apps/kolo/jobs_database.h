// The database of jobs that the commands about jobs use.
#pragma once

#include <filesystem>
#include <string>

#include "kolo/jobs.h"

namespace kolo::app {

/// The folder that KOLO_DB names, else this one if it has a database; "" = there is none.
std::filesystem::path jobs_folder();

/// The database that KOLO_DB names, else the one in this folder. Throws failed_precondition.
jobs::JobDatabase open_jobs();

/// Throws invalid_argument.
jobs::JobId parse_job_id(const std::string& text);
inline long long number_of(jobs::JobId id) { return static_cast<long long>(id); }

/// This program's own file.
std::string own_program();

}  // namespace kolo::app

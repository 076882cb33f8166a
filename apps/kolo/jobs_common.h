// What the commands about jobs share.
#pragma once

#include <string>
#include <vector>

#include "jobs/database/queued_launches.h"
#include "kolo/jobs.h"
#include "options.h"

namespace kolo::app {

/// The database that KOLO_DB names, else the one in this folder. Throws failed_precondition.
std::filesystem::path database_folder();
jobs::JobDatabase open_jobs();

/// Throws invalid_argument.
jobs::JobId parse_job_id(const std::string& text);
inline long long number_of(jobs::JobId id) { return static_cast<long long>(id); }

/// The options by which ls, rm and kill select jobs, and what they select.
std::span<const Setting> filter_settings();
jobs::JobFilter filter_of(const Options& options);
/// Words for an empty result: "no job has state FAILED and workflow TEST".
std::string describe_nothing(const jobs::JobFilter& filter);

/// The options that describe an allocation of a batch system and the launcher in it, and what they
/// say. Throws invalid_argument.
std::span<const Setting> allocation_settings();
jobs::LaunchRequest allocation_of(const Options& options);

/// Columns as wide as they need to be.
void print_table(const std::vector<std::vector<std::string>>& rows);
/// "11-16-2026 04:05:06".
std::string time_text(double seconds_since_1970);

void print_options_help(std::string_view usage, std::string_view about,
                        std::span<const Setting> table);
/// This program's own file.
std::string own_program();

}  // namespace kolo::app

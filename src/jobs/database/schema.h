// The tables of jobs.
#pragma once

#include <span>

#include "store/migrations.h"

namespace kolo::jobs {

inline constexpr std::string_view kRoom = "jobs";
/// Told when jobs came, went or changed from outside of a launcher.
inline constexpr std::string_view kChannel = "jobs";
/// Told when a launcher has written that jobs ended.
inline constexpr std::string_view kEndsChannel = "job_ends";

std::span<const store::Migration> migrations();

}  // namespace kolo::jobs

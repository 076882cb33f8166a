// The tables of studies.
#pragma once

#include <span>

#include "store/migrations.h"

namespace kolo::store {

inline constexpr std::string_view kStudyRoom = "study";
std::span<const Migration> study_migrations();

}  // namespace kolo::store

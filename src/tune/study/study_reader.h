// A study as the database has it, whoever controls it.
#pragma once

#include <string>

#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::tune {

/// Everything that was reported. Throws not_found.
Analysis read_study(store::StudyStore& store, const std::string& name);

/// Its objectives, from its spec.
std::vector<Objective> objectives_of_spec(const std::string& spec);

}  // namespace kolo::tune

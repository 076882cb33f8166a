// All studies of a database as a table: what `kolo studies` prints and the dashboard shows.
#pragma once

#include <string_view>

#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::tune {

/// "running" while somebody controls it; "interrupted" if nobody does and it has not ended.
[[nodiscard]] std::string_view state_of(store::StudyStore& store, const store::StudyRecord& study);

/// A row per study: its state, how many trials have ended or failed, and its best value.
[[nodiscard]] Table studies_table(store::StudyStore& store);

}  // namespace kolo::tune

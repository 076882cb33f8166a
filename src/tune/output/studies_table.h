// All studies of a database as a table: what `kolo studies` prints and the dashboard shows.
#pragma once

#include <string_view>
#include <vector>

#include "kolo/error.h"
#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::tune {

/// "running" while somebody controls it; "interrupted" if nobody does and it has not ended.
[[nodiscard]] std::string_view state_of(store::StudyStore& store, const store::StudyRecord& study);

/// What is counted for the row of a study.
struct StudyCounts {
  std::size_t trials = 0;
  std::int64_t done = 0, failed = 0;
  Value best{};  ///< nothing without a value, or with several objectives
};
[[nodiscard]] Table empty_studies_table();
[[nodiscard]] std::vector<Value> studies_row(store::StudyStore& store,
                                             const store::StudyRecord& study,
                                             const StudyCounts& counts);

/// A row per study: its state, how many trials have ended or failed, and its best value. One that
/// cannot be read is left out, and a warning says so.
[[nodiscard]] Table studies_table(store::StudyStore& store);

/// Whether only the study that was read is concerned, and not the database.
[[nodiscard]] bool is_of_one_study(const Error& error);

}  // namespace kolo::tune

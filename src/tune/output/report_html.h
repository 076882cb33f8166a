// A report of a study as one HTML page that loads nothing from elsewhere.
//
// The page holds the study as JSON and a small script that draws it as SVG: optimisation history,
// parallel coordinates, importance, learning curves, timeline, and a table with a filter.
#pragma once

#include <string>

#include "store/study_store.h"

namespace kolo::tune {

/// Throws not_found.
std::string report_html(store::StudyStore& store, const std::string& study);

}  // namespace kolo::tune

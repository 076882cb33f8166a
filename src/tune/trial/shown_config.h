// The configuration of a trial as people read it.
//
// The package for Python writes two things that C++ has no domains for as dictionaries of its own:
//   {"__kolo_number__": n, "__kolo_suggestion__": {…}}    what a search of the user's own suggested
//   {"__kolo_choice__": i, "__kolo_options__": [a, b]}    a choice among values that are searched,
//   too
// Studies store and hand out configurations with them. What is shown has what was suggested or
// chosen in their place.
#pragma once

#include <string>

#include "kolo/search/value.h"

namespace kolo::tune {

[[nodiscard]] search::Value shown_config(const search::Value& config);
/// The same, flat: flatten() of value_text.h.
[[nodiscard]] search::Value::Dict flat_config(const search::Value& config, char separator = '/');
/// Where a parameter of the space is in what is shown; "" if it is not there.
[[nodiscard]] std::string shown_path(const std::string& path);

}  // namespace kolo::tune

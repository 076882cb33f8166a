// Turns a domain as written into a parameter, and checks it by the rules of Tune and DeepHyper.
#pragma once

#include <string>

#include "kolo/search/space.h"

namespace kolo::search {

/// Throws invalid_argument "PATH: DOMAIN: RULE". Not for sample_from.
Parameter make_parameter(const std::string& path, const Domain& domain);

/// "quniform(0, 1, 0.25)", long lists cut short.
std::string describe(const Domain& domain);

/// From the parameter's own distribution.
double sample_entry(const Parameter& parameter, Random& random);
/// The nearest admissible entry; not-a-number stays.
double nearest_entry(const Parameter& parameter, double value);
Value entry_value(const Parameter& parameter, double entry);
/// Throws invalid_argument naming path and rule.
double value_entry(const Parameter& parameter, const Value& value);

}  // namespace kolo::search

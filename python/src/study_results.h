// What a study has found, as dictionaries and lists.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "kolo/tune/analysis.h"

namespace kolo::python {

pybind11::dict info_to_python(const tune::TrialInfo& trial);
pybind11::dict analysis_to_python(const tune::Analysis& analysis, bool was_interrupted);

/// A study that has run, or runs elsewhere, from its database. Throws not_found.
pybind11::dict read_study(const std::string& storage, const std::string& name);

}  // namespace kolo::python

// How `kolo hps` and `kolo nas` make a plan of their options, run it and show what came of it.
#pragma once

#include <string>
#include <string_view>

#include "search_options.h"

namespace kolo::app {

/// Finishes the plan: limits, folder, and the settings of the sampler. Space and run function are
/// left to the caller. Throws invalid_argument for options that the search does not take.
const SearchRow& make_plan(SearchOptions& options, const cli::OptionSet& given,
                           std::span<const SearchRow> rows);

/// Loads the problem and the run function of `kolo hps`, or the program in its place. Throws
/// not_found, invalid_argument.
void take_problem(hps::SearchPlan& plan, const std::vector<std::string>& program);

/// Runs it and prints the result; the exit status.
int run_and_show(hps::SearchPlan plan, const SearchOptions& options);

/// Throws invalid_argument if an option under this heading was given.
void refuse(const cli::OptionSet& given, std::string_view heading, std::string_view search);

/// A file, or LIB.so:NAME, as an absolute path: it must hold wherever evaluations start. Other
/// names stay as they are.
std::string absolute_name(const std::string& name);

/// The program NAME beside this one, or this one. Throws not_found.
std::string program_beside(std::string_view name);

}  // namespace kolo::app

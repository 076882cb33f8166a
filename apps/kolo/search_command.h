// What `kolo hps` and `kolo nas` share: their options, and how a search is run and shown.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hps/search/search_plan.h"
#include "hps/search/search_run.h"
#include "options.h"

namespace kolo::app {

/// One search that can be named on the command line.
struct SearchRow {
  std::string_view name;
  std::string_view sampler;
  std::string_view summary;
  /// Which further options it takes.
  bool models = false;   ///< --surrogate-model, --acq-func …
  bool evolves = false;  ///< --population-size, --sample-size
};

/// The words of a command line: SEARCH, options, and after `--` a program.
struct SearchArguments {
  SearchArguments(std::span<const Setting> table, std::vector<std::string> arguments);
  Options options;
  std::string search{};
  std::vector<std::string> program{};
};

/// Rows of options that every search takes, then those of `more`.
std::vector<Setting> search_settings(std::span<const Setting> more = {});

/// --num-agents and the settings of PPO.
std::span<const Setting> ppo_settings();

/// The searches of kolo nas.
std::span<const SearchRow> nas_searches();
/// The searches of kolo hps.
std::span<const SearchRow> hps_searches();

/// The row of a name. Throws invalid_argument, listing the known ones.
const SearchRow& find_search(std::span<const SearchRow> rows, const std::string& name);

/// Evaluators, limits, folder and the sampler's settings, as the options have them. Problem, space
/// and run function are left to the caller.
hps::SearchPlan plan_of(const SearchArguments& arguments, const SearchRow& row);

/// Runs it and prints the result; the exit status.
int run_and_show(hps::SearchPlan plan, const Options& options);

void print_search_help(std::string_view usage, std::string_view about,
                       std::span<const SearchRow> rows, std::span<const Setting> table);

/// A file, or LIB.so:NAME, as an absolute path: it must hold wherever evaluations start. Other
/// names stay as they are.
std::string absolute_name(const std::string& name);

/// The program NAME beside this one, or this one. Throws not_found.
std::string program_beside(std::string_view name);

}  // namespace kolo::app

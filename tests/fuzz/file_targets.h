// Targets whose parsers read files: results.csv, policies, and what other tools have written.
#pragma once

#include <string_view>

namespace kolo::fuzz {

void commits(std::string_view input);
void results(std::string_view input);
void deephyper(std::string_view input);
void optuna_journal(std::string_view input);
/// The first line is params.json, the rest is result.json.
void ray_folder(std::string_view input);
void ppo_files(std::string_view input);

}  // namespace kolo::fuzz

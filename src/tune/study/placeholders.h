// The words of a program with {parameters} in them.
//
// {lr}, {model/units}, {trial_dir}, {trial_id} and {checkpoint} are placeholders; {{lr}} stands for
// the text {lr}. Other braces, of JSON or of a shell, stay as they are.
#pragma once

#include <string>
#include <vector>

#include "kolo/search/space.h"

namespace kolo::tune {

/// The program's words for one trial. Throws invalid_argument for names that the configuration does
/// not have.
std::vector<std::string> fill_in(const std::vector<std::string>& program,
                                 const search::Value& config, const std::string& trial_id,
                                 const std::string& trial_dir, const std::string& checkpoint);

/// Throws invalid_argument for a placeholder that cannot be filled in for every configuration of
/// the space, suggesting a near name.
void check_placeholders(const std::vector<std::string>& program, const search::Space& space);

}  // namespace kolo::tune

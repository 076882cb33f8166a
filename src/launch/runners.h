// Commands that start the ranks of a program on some nodes.
//
// A runner is a template of words: {ranks} in all, {ranks_per_node}, {nodes} how many, {hosts} as
// a,b, {slots} as a:2,b:2, {threads} of a rank, {threads_per_core}, {flags} the user's further
// words, {variables} as -x NAME for each variable of the job. The program and its arguments follow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"

namespace kolo::launch {

struct RanksToStart {
  std::vector<std::string> hosts;  ///< one may be named several times: then it has several shares
  int ranks_per_node = 1;
  int threads = 1;
  int threads_per_core = 1;
  std::vector<std::string> flags{};
  std::vector<std::string> variables{};  ///< names; their values are in the environment
  std::vector<std::string> program;
};

/// `make` is the template.
using RunnerTable = Registry<std::string_view>;
const RunnerTable& runners();

/// `runner` is a name of the table or a template of its own (it has a blank). Throws not_found for
/// an unknown name, invalid_argument for an unknown {word}.
std::vector<std::string> runner_command(std::string_view runner, const RanksToStart& start);

}  // namespace kolo::launch

// The commands of kolo-nas.
#pragma once

#include <string>
#include <vector>

#include "hps/search/search_plan.h"
#include "options.h"

namespace kolo::app {

using Arguments = std::vector<std::string>;

int run_nas_search(const Arguments& arguments);
int run_nas_evaluate(const Arguments& arguments);
int run_nas_draw(const Arguments& arguments);
int run_nas_post_train(const Arguments& arguments);

/// Makes this process one of several agents, if there are to be several, and the sampler one that
/// learns with the others. May replace the process by a `kolo run` of all agents.
void become_agent(hps::SearchPlan& plan, const Options& options, const Arguments& arguments);

}  // namespace kolo::app
